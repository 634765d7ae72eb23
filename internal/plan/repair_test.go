package plan_test

import (
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

const restart = "a restart of the host, because the computer name a takes effect only after a restart"

// Repairs by the agent's service when the plan needs files that only the operator has. R-092
func TestRepair(t *testing.T) {
	upgrade := func(m *model, s *nodespec.NodeSpec) {
		addRelease(s, "kubelet", "v2")
		s.Files[0].Content = "other\n"
	}
	for name, test := range map[string]struct {
		change func(*model, *nodespec.NodeSpec)
		failed []string // components that could not be installed
		want   []string
		left   string
	}{
		"nothing is missing": {func(m *model, _ *nodespec.NodeSpec) { m.stop("kube-proxy") }, nil, []string{"StartService kube-proxy"}, ""},
		"an upgrade was cut off": {
			upgrade, nil, nil, "kubelet.exe of kubelet, which is not on the host",
		},
		"an upgrade was cut off and the kubelet stands still": {
			func(m *model, s *nodespec.NodeSpec) {
				upgrade(m, s)
				m.stop("kubelet")
			}, nil, []string{"StartService kubelet", "StartService overlay", "StartService kube-proxy"}, "kubelet.exe of kubelet, which is not on the host",
		},
		"an upgrade was cut off and what the kubelet depends on changes": {
			func(m *model, s *nodespec.NodeSpec) {
				upgrade(m, s)
				s.Services[0].CommandLine += " --other"
			}, nil, []string{
				"StopService kube-proxy", "StopService overlay", "StopService kubelet", "StopService containerd",
				"ConfigureService containerd", "StartService containerd", "StartService kubelet", "StartService overlay", "StartService kube-proxy",
			}, "kubelet.exe of kubelet, which is not on the host",
		},
		"the files are on the host and cannot be installed": {
			func(m *model, s *nodespec.NodeSpec) {
				upgrade(m, s)
				m.Payload["sum of kubelet v2"] = nodespec.IncomingRoot + `\kubelet`
			}, []string{"kubelet"}, nil, "",
		},
		"the program of a service that stands still is gone": {
			func(m *model, s *nodespec.NodeSpec) {
				m.stop("overlay")
				delete(m.Payload, "sum of overlay v1")
				delete(m.Files, s.Releases[2].Path(s.Releases[2].Files[0]))
			}, nil, nil, "overlay.exe of overlay, which is not on the host",
		},
		"a program is gone of a service that runs": {
			func(m *model, s *nodespec.NodeSpec) {
				delete(m.Payload, "sum of overlay v1")
				delete(m.Files, s.Releases[2].Path(s.Releases[2].Files[0]))
				s.Services[0].CommandLine += " --other" // overlay would stop too and could not start again
			}, nil, nil, "overlay.exe of overlay, which is not on the host",
		},
		"the host has another address than its node": {
			func(m *model, s *nodespec.NodeSpec) {
				m.System.Addresses, s.NodeIP = []string{"10.1.42.9"}, "10.1.42.1"
			},
			nil, nil, "another address for the node, because the host no longer has 10.1.42.1 but 10.1.42.9",
		},
		"the host has another address and lacks files": {
			func(m *model, s *nodespec.NodeSpec) {
				upgrade(m, s)
				m.System.Addresses, s.NodeIP = []string{"10.1.42.9"}, "10.1.42.1"
			}, nil, nil, "another address for the node, because the host no longer has 10.1.42.1 but 10.1.42.9; kubelet.exe of kubelet, which is not on the host",
		},
		"the host has one more address than its node": {
			func(m *model, s *nodespec.NodeSpec) {
				m.System.Addresses, s.NodeIP = []string{"10.1.42.9", "10.1.42.1"}, "10.1.42.1"
			}, nil, nil, "",
		},
		"the host has no address at the moment": {
			func(m *model, s *nodespec.NodeSpec) { m.System.Addresses, s.NodeIP = nil, "10.1.42.1" }, nil, nil, "",
		},
		"the host waits for a restart": {
			func(m *model, _ *nodespec.NodeSpec) { m.System.PendingHostName = "b" }, nil, nil, restart,
		},
		"the host waits for a restart after a boot": {
			func(m *model, _ *nodespec.NodeSpec) {
				m.rebootHost()
				m.System.PendingHostName = "b"
			}, nil, []string{
				`RemovePath C:\k\cni\cni.conf`, "StartService kubelet", "StartService overlay", "AwaitNetwork OVN", "CreateEndpoint VIP", "AttachEndpoint VIP",
			}, restart,
		},
		"the host waits for a restart after a boot, and a service is not as it should be": {
			func(m *model, s *nodespec.NodeSpec) {
				m.rebootHost()
				m.System.PendingHostName = "b"
				s.Services[2].CommandLine += " --other"
			}, nil, []string{`RemovePath C:\k\cni\cni.conf`, "StartService kubelet", "AwaitNetwork OVN", "CreateEndpoint VIP", "AttachEndpoint VIP"}, restart,
		},
		"the host waits for a restart after a boot, and a file of the kubelet differs": {
			func(m *model, s *nodespec.NodeSpec) {
				m.rebootHost()
				m.System.PendingHostName = "b"
				s.Files[0].Content = "other\n"
			}, nil, []string{`RemovePath C:\k\cni\cni.conf`, "AwaitNetwork OVN", "CreateEndpoint VIP", "AttachEndpoint VIP"}, restart,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, spec := newConfiguredModel(t)
			for _, release := range spec.Releases {
				m.Payload[release.Files[0].SHA256] = release.Path(release.Files[0])
			}
			test.change(m, &spec)
			var failed []string
			for _, release := range spec.Releases {
				if slices.Contains(test.failed, release.Component) {
					failed = append(failed, release.Directory)
				}
			}
			p, left := plan.Repair(m.Facts, spec, failed...)
			if got := namesOfSteps(p.Steps); !slices.Equal(got, test.want) || left != test.left {
				t.Errorf("got %q, left %q\nwant %q, left %q", got, left, test.want, test.left)
			}
		})
	}
}

// A directory is removed together with the remains of interrupted writes, but only if all its files are stale.
func TestMake_InterruptedWritesRemovedWithDirectory(t *testing.T) {
	const dir = `C:\k\registries\a`
	for name, test := range map[string]struct {
		entry string
		want  []string
	}{
		"a draft of a stale file":           {"hosts.toml.wmco-tmp", []string{"RemovePath " + dir}},
		"a draft of somebody else's file":   {"other.wmco-tmp", []string{`RemovePath ` + dir + `\hosts.toml`}},
		"a name that only looks like a one": {"hosts.toml.wmco-tmp2", []string{`RemovePath ` + dir + `\hosts.toml`}},
	} {
		t.Run(name, func(t *testing.T) {
			m, spec := newConfiguredModel(t)
			mirrored := spec
			mirrored.Directories, mirrored.Files = slices.Clone(spec.Directories), slices.Clone(spec.Files)
			addMirrors(&mirrored, "b", "y")
			spec.Directories, spec.Files = slices.Clone(mirrored.Directories), slices.Clone(mirrored.Files)
			addMirrors(&mirrored, "a", "x")
			convergeModel(t, m, mirrored, -1)
			fact := m.Files[dir]
			fact.Entries = append(slices.Clone(fact.Entries), test.entry)
			m.Files[dir] = fact
			if got := namesOfSteps(plan.Make(m.Facts, spec).Steps); !slices.Equal(got, test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
}
