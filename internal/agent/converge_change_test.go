package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// newConfiguredRig returns a configured host.
func newConfiguredRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t).start()
	r.configureHost()
	r.awaitServices()
	return r
}

// mustApply applies a spec that needs no further input from the operator.
func (r *rig) mustApply(spec nodespec.NodeSpec) []string {
	r.Helper()
	line, steps := r.apply(spec)
	if line.Type != agentapi.TypeResult || len(line.Result.Plan.Needs) != 0 {
		r.Fatalf("%s %v", line.Type, line.Failure)
	}
	return steps
}

func TestApply_InstallsOnlyChangedComponents(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	r.versions = versions{"kubelet": "v2", "containerd": "v2"}
	steps := r.mustApply(r.fullSpec())
	former := versions{}

	t.Run("only it is installed", func(t *testing.T) {
		if slices.Contains(steps, "InstallRelease kube-proxy") || !slices.Contains(steps, "InstallRelease kubelet") {
			t.Error(steps)
		}
	})
	t.Run("what depends on it is restarted in order, the rest not at all", func(t *testing.T) {
		var got []string
		for _, step := range steps {
			if strings.HasPrefix(step, "St") {
				got = append(got, step)
			}
		}
		want := []string{
			"StopService kube-proxy", "StopService hybrid-overlay-node", "StopService kubelet", "StopService containerd",
			"StartService containerd", "StartService kubelet", "StartService hybrid-overlay-node", "StartService kube-proxy",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("the former release goes, but not while a shim runs from it", func(t *testing.T) {
		if _, err := r.Drive().Stat(former.releaseOf("kubelet").Directory); err == nil {
			t.Error("kubelet v1 is still there")
		}
		if _, err := r.Drive().Stat(former.releaseOf("containerd").Directory); err != nil {
			t.Fatal("containerd v1 was taken away under its shim")
		}
		for _, process := range r.RunningProcesses() {
			if strings.HasPrefix(process.Path, former.releaseOf("containerd").Directory) {
				r.must(r.Host().Processes.Kill(r.ctx, process.PID))
			}
		}
		steps := r.mustApply(r.fullSpec())
		directory := former.releaseOf("containerd").Directory
		want := []string{`RemoveExclusion ` + directory + `\shim.exe`, "RemovePath " + directory}
		if !slices.Equal(steps, want) {
			t.Errorf("got %q, want %q", steps, want)
		}
	})
	t.Run("no trace of it is left in the ledger", func(t *testing.T) {
		line, _ := r.run("facts")
		if _, exists := line.Result.Facts.Ledger.Paths[former.releaseOf("containerd").Directory]; exists {
			t.Error("it is still there")
		}
	})
	t.Run("removal still gives the host back", func(t *testing.T) {
		r.removeNode()
		compareSnapshots(t, r.before, r.Snapshot())
	})
}

func TestApply_FilesOnHostNotSentAgain(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	spec := r.fullSpec()
	release := versions{}.releaseOf("kubelet")
	release.Component, release.Directory = "kubelet-debug", nodespec.ReleaseDirectory("kubelet-debug", "0123456789ab")
	spec.Releases = append(spec.Releases, release)
	if args := r.sendSpec(spec); len(args) != 2 {
		t.Errorf("a payload was sent: %q", args)
	}
	r.mustApply(spec)
	if data, _ := r.Drive().ReadFile(release.Path(release.Files[0])); hexDigest(data) != release.Files[0].SHA256 {
		t.Error("it was not copied")
	}
}

// A changed line end alone is no change; a real change restarts the services that read the file, once. R-094
func TestApply_LineEndingsAreNoChange(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	for _, path := range []string{`C:\k\cni\cni.conf`, `C:\k\kube-proxy.conf`} {
		data, err := r.Drive().ReadFile(path)
		r.must(err)
		r.must(r.Drive().WriteFile(path, []byte(strings.ReplaceAll(string(data), "\n", "\r\n"))))
	}
	if steps := r.mustApply(r.fullSpec()); len(steps) != 0 {
		t.Errorf("got %q", steps)
	}
	r.must(r.Drive().WriteFile(`C:\k\kube-proxy.conf`, []byte("changed\n")))
	want := []string{"StopService kube-proxy", `WriteFile C:\k\kube-proxy.conf`, "StartService kube-proxy"}
	if steps := r.mustApply(r.fullSpec()); !slices.Equal(steps, want) {
		t.Errorf("got %q", steps)
	}
}

// A restart required by a changed file is not lost if the agent is killed between the change and the restart.
func TestApply_RestartForChangedFileSurvivesKill(t *testing.T) {
	t.Parallel()
	spec := func(r *rig) nodespec.NodeSpec {
		spec := r.fullSpec()
		spec.Files[0].Content = "kind: KubeletConfiguration\nmaxPods: 200\n"
		return spec
	}
	reference := newConfiguredRig(t)
	counting := &killer{}
	counting.registerHook(reference)
	reference.mustApply(spec(reference))
	for n := range killPoints(counting.seen) {
		r := newConfiguredRig(t)
		started := r.countEntries(fake.KindService, "kubelet runs")
		k := &killer{n: n}
		k.registerHook(r)
		r.apply(spec(r))
		r.mustApply(spec(r))
		if now := r.countEntries(fake.KindService, "kubelet runs"); now != started+1 {
			t.Errorf("killed before %s: kubelet was started %d times for the change", k.at, now-started)
		}
	}
}

func TestApply_RestoresObjectsRemovedFromSpec(t *testing.T) {
	t.Parallel()
	r := newRig(t, withForeignObjects).start()
	r.configureHost()
	spec := r.fullSpec()
	spec.Firewall, spec.Environment, spec.Links = nil, nil, spec.Links[1:]
	spec.Files = spec.Files[1:]
	r.mustApply(spec)
	if data, _ := r.Drive().ReadFile(`C:\k\kubelet.conf`); string(data) != "password: canary\r\n" {
		t.Errorf("the file from before was not given back: %q", data)
	}
	rules, err := r.Host().Firewall.Rules(r.ctx)
	r.must(err)
	if i := slices.IndexFunc(rules, func(rule host.FirewallRule) bool { return rule.Name == "ContainerLogsPort" }); i < 0 || rules[i].LocalPort != 9 {
		t.Error("the firewall rule from before was not given back")
	}
	if steps := r.mustApply(spec); len(steps) != 0 {
		t.Errorf("again: %q", steps)
	}
	// A file created by another program is foreign.
	r.must(r.Drive().WriteFile(`C:\k\win-overlay.exe`, []byte("theirs")))
	if steps := r.mustApply(spec); len(steps) != 0 {
		t.Errorf("took what is not ours: %q", steps)
	}
}

func TestCertificate(t *testing.T) {
	t.Parallel()
	t.Run("one that the kubelet rotated is not overwritten", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		r.must(r.Drive().Rename(linkTarget(r), pki+`\kubelet-client-2030-01-01-00-00-00.pem`))
		r.must(r.Drive().Symlink(pki+`\kubelet-client-2030-01-01-00-00-00.pem`, pki+`\kubelet-client-current.pem`))
		spec := r.fullSpec()
		spec.Identity.Certificate = "the one from the first join"
		if steps := r.mustApply(spec); len(steps) != 0 {
			t.Errorf("got %q", steps)
		}
	})
	t.Run("one that expired is asked for and issued again, and the kubelet restarts with it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		r.validity = -time.Second
		spec := newSpec(nil)
		spec.HostName = ""
		line, _ := r.apply(spec)
		if line.Type == agentapi.TypeRebooting {
			r.awaitBoot("")
			line, _ = r.apply(spec)
		}
		spec.Identity.Certificate = r.signRequest(line.Result.Facts.Identity.Request)
		if line, _ = r.apply(spec); !slices.Contains(line.Result.Plan.Needs, nodespec.NeedCertificate) {
			t.Fatal("an expired certificate was taken")
		}
		r.validity = time.Hour
		spec.Identity.Certificate = r.signRequest(line.Result.Facts.Identity.Request)
		if line, _ = r.apply(spec); slices.Contains(line.Result.Plan.Needs, nodespec.NeedCertificate) {
			t.Fatal("a good certificate was not taken")
		}
		r.advanceUntil("the pod network, which takes routes away", r.hasNetwork)
		r.apply(spec)
		// With another node name, the certificate is for another identity.
		spec.Identity.CommonName = "system:node:other"
		line, steps := r.apply(spec)
		if !slices.Equal(steps, []string{"RequestCertificate system:node:other"}) {
			t.Errorf("got %q", steps)
		}
		spec.Identity.Certificate = r.signRequest(line.Result.Facts.Identity.Request)
		_, steps = r.apply(spec)
		want := []string{
			"StopService hybrid-overlay-node", "StopService kubelet", "InstallCertificate system:node:other",
			"StartService kubelet", "StartService hybrid-overlay-node",
		}
		if !slices.Equal(steps, want) {
			t.Errorf("got %q", steps)
		}
	})
	t.Run("one that was signed for an earlier key is not taken", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		spec := newSpec(nil)
		line, _ := r.apply(spec)
		earlier := r.signRequest(line.Result.Facts.Identity.Request)
		r.awaitBoot("")
		r.must(r.Drive().Remove(pki + `\kubelet-client-pending.pem`))
		spec.Identity.Certificate = earlier
		line, _ = r.apply(spec)
		if line.Type != agentapi.TypeResult || !slices.Contains(line.Result.Plan.Needs, nodespec.NeedCertificate) {
			t.Errorf("%s %v", line.Type, line.Failure)
		}
	})
	t.Run("a plain file in the place of the link is replaced, for the kubelet could not rotate it", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		data, err := r.Drive().ReadFile(pki + `\kubelet-client-current.pem`)
		r.must(err)
		r.must(r.Drive().Remove(pki + `\kubelet-client-current.pem`))
		r.must(r.Drive().WriteFile(pki+`\kubelet-client-current.pem`, data))
		r.configureHost()
		if linkTarget(r) == "" {
			t.Error("it is still a file")
		}
	})
}

func linkTarget(r *rig) string {
	r.Helper()
	info, err := r.Drive().Stat(pki + `\kubelet-client-current.pem`)
	r.must(err)
	return info.LinkTarget
}

// Files added by other programs to a pre-existing directory are foreign, regardless of the time. R-064
func TestRemove_KeepsForeignFilesInExistingDirectories(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.must(r.Drive().MkdirAll(`C:\var\log`))
	r.configureHost()
	r.awaitServices()
	for _, path := range []string{`C:\var\www`, `C:\var\log\iis`, `C:\var\log\pods`} {
		r.must(r.Drive().MkdirAll(path))
		r.must(r.Drive().WriteFile(path+`\data`, []byte("data")))
	}
	r.removeNode()
	for path, stays := range map[string]bool{
		`C:\var\www\data`: true, `C:\var\log\iis\data`: true, `C:\var\log\pods`: false, `C:\var\log\kubelet`: false, `C:\var\lib`: false,
	} {
		if _, err := r.Drive().Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v", path, err)
		}
	}
}
