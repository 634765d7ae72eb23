package plan_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// drawInitialModel returns an unconfigured host with arbitrary foreign objects at the node's paths and names.
func drawInitialModel(t *rapid.T) *model {
	m := newModel()
	some := rapid.Bool()
	if some.Draw(t, "own firewall rule") {
		m.Firewall["Logs"] = host.FirewallRule{Name: "Logs", DisplayName: "own", Protocol: "TCP", LocalPort: 1}
	}
	if some.Draw(t, "own variable") {
		m.Environment["NO_PROXY"] = "own"
	}
	m.EventSource = some.Draw(t, "event source of another agent")
	m.Antivirus.Active, m.refuses = some.Draw(t, "Defender at work"), some.Draw(t, "Defender refuses")
	if some.Draw(t, "own exclusions") {
		m.Antivirus.Exclusions = []host.Exclusion{
			{Kind: host.ExcludePath, Value: `D:\data`},
			{Kind: host.ExcludeProcess, Value: `C:\K\Releases\containerd-v1\containerd.exe`},
		}
	}
	if some.Draw(t, "own authority") {
		m.TrustedCertificates = []string{"aa01"}
	}
	if some.Draw(t, "own route") {
		m.Routes = []string{"169.254.169.254/32"}
	}
	if some.Draw(t, "own service") {
		m.Services["kube-proxy"] = host.Service{
			ServiceConfig: host.ServiceConfig{Name: "kube-proxy", CommandLine: "own.exe", StartType: host.StartAutomatic},
			State:         host.ServiceRunning, RunningCommandLine: "own.exe",
		}
	}
	if some.Draw(t, "own files in C:\\k") {
		m.Files[nodespec.Root] = plan.FileFact{Directory: true, Entries: []string{"notes", "wicd"},
			Access: host.AccessInherited}
		m.Files[`C:\k\notes`] = plan.FileFact{SHA256: "notes", Access: host.AccessInherited}
	}
	if some.Draw(t, "own log folder") {
		m.Files[`C:\var`] = plan.FileFact{Directory: true, Entries: []string{"log"}, Access: host.AccessInherited}
		m.Files[`C:\var\log`] = plan.FileFact{Directory: true, Entries: []string{"own.log"},
			Access: host.AccessAdministrators}
		m.Files[`C:\var\log\own.log`] = plan.FileFact{SHA256: "own", Access: host.AccessInherited}
	}
	if some.Draw(t, "Containers enabled") {
		m.Features["Containers"] = host.FeatureEnabled
	}
	return m
}

// drawSpec returns a node in one of many variants.
func drawSpec(t *rapid.T, label string) nodespec.NodeSpec {
	spec := smallSpec()
	for _, component := range []string{"containerd", "kubelet", "overlay", "kube-proxy"} {
		addRelease(&spec, component, rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, label+component))
	}
	spec.Files[0].Content = rapid.SampledFrom([]string{"a\n", "b\r\n"}).Draw(t, label+"kubelet.conf")
	if rapid.Bool().Draw(t, label+"no host name") {
		spec.HostName = ""
	}
	if rapid.Bool().Draw(t, label+"a feature without restart") {
		spec.Features = append(spec.Features, "TelnetClient")
	}
	if rapid.Bool().Draw(t, label+"no proxy") {
		spec.Environment = nil
	}
	spec.TrustedCertificates = nil
	for _, fingerprint := range []string{"aa01", "bb02"} {
		if rapid.Bool().Draw(t, label+"authority "+fingerprint) {
			spec.TrustedCertificates = append(spec.TrustedCertificates, nodespec.TrustedCertificate{Fingerprint: fingerprint,
				Subject: "CN=" + fingerprint})
		}
	}
	if rapid.Bool().Draw(t, label+"no route") {
		spec.Routes = nil
	}
	for _, registry := range []string{"a", "b"} {
		if rapid.Bool().Draw(t, label+"mirrors of "+registry) {
			addMirrors(&spec, registry, rapid.SampledFrom([]string{"x", "y"}).Draw(t, label+"mirror of "+registry))
		}
	}
	if rapid.Bool().Draw(t, label+"no firewall") {
		spec.Firewall = nil
	}
	return spec
}

// applyDrift makes arbitrary changes on a configured host.
func applyDrift(t *rapid.T, m *model) {
	for range rapid.IntRange(0, 4).Draw(t, "drifts") {
		name := rapid.SampledFrom([]string{"containerd", "kubelet", "overlay", "kube-proxy"}).Draw(t, "service")
		switch rapid.IntRange(0, 12).Draw(t, "kind") {
		case 0:
			m.stop(name)
		case 1:
			m.stop(name)
			delete(m.Services, name)
		case 2:
			if service, exists := m.Services[name]; exists {
				service.CommandLine += " --altered"
				service.Description = "altered"
				m.Services[name] = service
			}
		case 3:
			delete(m.Files, `C:\k\kubelet.conf`)
		case 4:
			m.Files[`C:\k\`+name+`.exe`] = plan.FileFact{LinkTarget: "elsewhere"}
		case 5:
			if rapid.Bool().Draw(t, "for a moment") {
				m.unread = m.Identity.Current
			}
			m.Identity.Current = nil
		case 6:
			m.Networks, m.Endpoints = nil, nil
			m.stop("overlay")
		case 7:
			release := nodespec.ReleasesRoot + `\` + name + "-v1"
			delete(m.Files, release+`\`+nodespec.ReleaseManifest)
		case 8:
			m.Antivirus.Active = true
		case 10:
			m.rebootHost()
		case 11:
			m.Routes = nil
		case 12:
			if _, recorded := m.Ledger.TrustedCertificates["bb02"]; recorded {
				m.TrustedCertificates = withoutEntry(m.TrustedCertificates, "bb02")
			}
		case 9:
			m.Antivirus.Exclusions = slices.DeleteFunc(m.Antivirus.Exclusions, func(e host.Exclusion) bool {
				return slices.ContainsFunc(m.Ledger.Exclusions, e.Is)
			})
		}
	}
}

func TestMake_SameInputsSamePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, spec := drawInitialModel(t), drawSpec(t, "")
		convergeModel(t, m, spec, -1)
		applyDrift(t, m)
		next := drawSpec(t, "next ")
		if a, b := plan.Make(m.Facts, next), plan.Make(m.Facts, next); !reflect.DeepEqual(a, b) {
			t.Fatalf("%s\n\n%s", formatPlan(a), formatPlan(b))
		}
		if a, b := plan.Remove(m.Facts), plan.Remove(m.Facts); !reflect.DeepEqual(a, b) {
			t.Fatalf("%s\n\n%s", formatPlan(a), formatPlan(b))
		}
	})
}

// After a successful apply the plan is empty, from every state of the host, to every spec, and if the agent is
// killed in between. Each disruptive step is marked as such: convergeModel checks each step.
func TestMake_EmptyAfterApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawInitialModel(t)
		m.blackout = rapid.Bool().Draw(t, "by a failure of the power")
		convergeModel(t, m, drawSpec(t, ""), rapid.IntRange(-1, 40).Draw(t, "killed after"))
		applyDrift(t, m)
		spec := drawSpec(t, "next ")
		convergeModel(t, m, spec, rapid.IntRange(-1, 30).Draw(t, "killed again after"))
		for _, service := range spec.Services {
			if m.Services[service.Name].RunningCommandLine != service.CommandLine {
				t.Fatalf("service %s runs %q", service.Name, m.Services[service.Name].RunningCommandLine)
			}
			for _, path := range service.RestartOn {
				if m.loaded[service.Name][path] != m.Files[path].Text {
					t.Fatalf("service %s runs with the former content of %s", service.Name, path)
				}
			}
		}
		for path, fact := range m.Files {
			if fact.Listed && len(fact.Entries) == 0 && path != `C:\k\registries` {
				t.Fatalf("the empty folder %s is left", path)
			}
		}
	})
}

// A removal restores the original state, from every state of the host and if the agent is killed in between. R-064
func TestRemove_RestoresOriginalState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawInitialModel(t)
		want := m.copyModel()
		convergeModel(t, m, drawSpec(t, ""), rapid.IntRange(-1, 40).Draw(t, "killed after"))
		applyDrift(t, m)
		if rapid.Bool().Draw(t, "upgraded") {
			convergeModel(t, m, drawSpec(t, "next "), -1)
		}
		m.Processes = []host.Process{{PID: 7, Name: "shim.exe", Path: `C:\k\releases\containerd-v1\shim.exe`}}
		restoreModel(t, m, rapid.IntRange(-1, 30).Draw(t, "killed again after"))
		operatorLeaves(m)
		operatorLeaves(want)
		// Routes do not survive a boot: the relevant state is the state when the route was recorded.
		if before, named := m.Ledger.Routes["169.254.169.254/32"]; named && before != (len(m.Routes) > 0) || !named &&
			len(m.Routes) > len(want.Routes) {
			t.Fatalf("routes %v, before %v, ledger %v", m.Routes, want.Routes, m.Ledger.Routes)
		}
		m.Routes, m.TrustedCertificates = want.Routes, orNil(m.TrustedCertificates)
		m.Ledger, m.Identity, m.Payload = want.Ledger, want.Identity, want.Payload
		m.Antivirus.Active, m.Antivirus.Exclusions = want.Antivirus.Active, orNil(m.Antivirus.Exclusions)
		m.disrupted, m.disruptive, m.subnet = want.disrupted, want.disruptive, want.subnet
		m.reads, m.loaded, m.unread = want.reads, want.loaded, want.unread
		m.Networks, m.Endpoints, m.Processes = orNil(m.Networks), orNil(m.Endpoints), orNil(m.Processes)
		if !reflect.DeepEqual(m, want) {
			t.Fatalf("got\n%+v\nwant\n%+v", m.Facts, want.Facts)
		}
	})
}

// operatorLeaves deletes the agent's directory, and C:\k if it is empty.
func operatorLeaves(m *model) {
	delete(m.Files, nodespec.AgentRoot)
	root := m.Files[nodespec.Root]
	root.Entries = m.listEntries(nodespec.Root)
	m.Files[nodespec.Root] = root
	if len(root.Entries) == 0 {
		delete(m.Files, nodespec.Root)
	}
}

func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
