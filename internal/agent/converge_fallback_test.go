package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// next returns the spec of a later operator release: another agent, other programs, files, rules and variables.
// containerd is unchanged, because its shims would outlive a rollback.
func (r *rig) next() nodespec.NodeSpec {
	r.versions = versions{"kubelet": "v2", "kube-proxy": "v2", "cni": "v2"}
	spec := r.upgraded()
	spec.Files[0].Content = "kind: KubeletConfiguration\nmaxPods: 100\n"
	spec.Files = append(spec.Files, nodespec.File{Path: `C:\k\registration`, Content: "new\n", Access: host.AccessInherited})
	spec.Environment = map[string]string{"NO_PROXY": ".svc"}
	spec.Firewall = []host.FirewallRule{
		{Name: "WindowsExporter", DisplayName: "WindowsExporter", Protocol: "TCP", LocalPort: 9182, Enabled: true, Allow: true},
	}
	return spec
}

// upgrade applies a spec and keeps the former spec as rollback target.
func (r *rig) upgrade(spec, former nodespec.NodeSpec) (verb.Line, []string) {
	r.Helper()
	args := r.send(spec)
	if args == nil {
		return verb.Line{}, nil
	}
	return r.run(append([]string{"apply", "--rollback-to", "sha256:" + former.Digest()}, args...)...)
}

// result fails the test unless the last line is a result.
func (r *rig) result(line verb.Line, steps []string) (*verb.Result, []string) {
	r.Helper()
	if line.Type != verb.TypeResult {
		r.Fatalf("%s %v", line.Type, line.Failure)
	}
	return line.Result, steps
}

func (r *rig) there(paths ...string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool { _, err := r.Drive().Stat(path); return err != nil })
}

// formerPlaces returns the paths that a rollback to the first spec needs.
func formerPlaces() []string {
	paths := []string{nodespec.AgentPath(sum(agentProgram))}
	for _, release := range newSpec(nil).Releases {
		paths = append(paths, release.Manifest(), release.Path(release.Files[0]))
	}
	return paths
}

//
func TestUpgradeWithAFallback(t *testing.T) {
	t.Parallel()
	r := node(t)
	former := r.full()
	joined := withoutChance(r.Snapshot())
	next := r.next()
	result, _ := r.result(r.upgrade(next, former))

	t.Run("the former spec is kept, and all that it needs", func(t *testing.T) {
		if result.Facts.Fallback != former.Digest() || result.Facts.Applied != next.Digest() {
			t.Errorf("fallback %s, applied %s", result.Facts.Fallback, result.Facts.Applied)
		}
		if !r.there(formerPlaces()...) {
			t.Error("something of it is gone")
		}
	})
	t.Run("the rest follows the new spec", func(t *testing.T) {
		got := r.Snapshot()
		if _, there := got.Firewall["ContainerLogsPort"]; there || got.Environment["HTTPS_PROXY"] != "" || got.Environment["NO_PROXY"] != ".svc" {
			t.Errorf("%v, %v", got.Firewall, got.Environment)
		}
	})
	t.Run("the agent's service repairs drift, and takes away nothing of it", func(t *testing.T) {
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.count("ready", nodespec.ServiceAgent) > 1 }))
		r.pass(timeouts.DriftPoll)
		r.must(r.Drive().WriteFile(`C:\k\registration`, []byte("other")))
		r.pass(timeouts.DriftCheck)
		if data, _ := r.Drive().ReadFile(`C:\k\registration`); string(data) != "new\n" {
			t.Errorf("got %q", data)
		}
		if !r.there(formerPlaces()...) || !r.there(nodespec.FallbackPath) {
			t.Error("something of it is gone")
		}
	})
	t.Run("applied again, nothing is done and it stays kept", func(t *testing.T) {
		result, steps := r.result(r.upgrade(next, next))
		if len(steps) > 0 || result.Facts.Fallback != former.Digest() {
			t.Errorf("steps %v, fallback %s", steps, result.Facts.Fallback)
		}
		if !r.there(formerPlaces()...) {
			t.Error("something of it is gone")
		}
	})
	t.Run("a rollback brings the host back as it was, and needs nothing for that", func(t *testing.T) {
		requests := len(r.requests)
		result, steps := r.result(r.run("rollback"))
		if result.Facts.Fallback != "" || result.Facts.Applied != former.Digest() || len(result.Facts.Kept) > 0 || len(result.Plan.Needs) > 0 {
			t.Errorf("fallback %q, kept %v, applied %s, needs %v", result.Facts.Fallback, result.Facts.Kept, result.Facts.Applied, result.Plan.Needs)
		}
		if len(steps) == 0 || slices.ContainsFunc(steps, func(step string) bool { return strings.HasPrefix(step, "InstallRelease") }) {
			t.Errorf("steps %v", steps)
		}
		compare(t, joined, withoutChance(r.Snapshot()))
		if r.there(nodespec.FallbackPath) || len(r.requests) != requests {
			t.Error("the fallback is still there, or a certificate was asked for")
		}
	})
	t.Run("asked for again, there is nothing to go back to", func(t *testing.T) {
		line, _ := r.run("rollback")
		r.fails(line, verb.ReasonSpecNotFound, "no NodeSpec is kept")
		line, _ = r.run("rollback", "--digest", "sha256:"+next.Digest())
		r.fails(line, verb.ReasonSpecNotFound)
		compare(t, joined, withoutChance(r.Snapshot()))
	})
	t.Run("asked for again by its digest, it is done", func(t *testing.T) {
		result, steps := r.result(r.run("rollback", "--digest", "sha256:"+former.Digest()))
		if len(steps) > 0 || result.Facts.Applied != former.Digest() {
			t.Errorf("steps %v", steps)
		}
	})
	t.Run("the service of the former agent works on", func(t *testing.T) {
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.count("ready", nodespec.ServiceAgent) > 2 }))
		r.pass(timeouts.DriftPoll)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.pass(timeouts.DriftPoll)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
			t.Error("kube-proxy does not run")
		}
	})
	t.Run("removal still gives the host back", func(t *testing.T) {
		r.remove()
		compare(t, r.before, r.Snapshot())
	})
}

func TestSettledUpgrade(t *testing.T) {
	t.Parallel()
	r := joined(t)
	former := r.full()
	next := r.next()
	r.result(r.upgrade(next, former))
	reference := joined(t)
	reference.applied(reference.next())

	result, steps := r.result(r.run("commit"))
	t.Run("forgets the former spec and removes what was kept for it", func(t *testing.T) {
		if result.Facts.Fallback != "" || len(result.Facts.Kept) > 0 || r.there(nodespec.FallbackPath) || r.there(folderOf(agentProgram)) {
			t.Errorf("fallback %q", result.Facts.Fallback)
		}
		if slices.ContainsFunc(steps, func(step string) bool { return !strings.HasPrefix(step, `RemovePath C:\k\releases\`) }) || len(steps) != 3 {
			t.Errorf("steps %v", steps)
		}
		compare(t, withoutChance(reference.Snapshot()), withoutChance(r.Snapshot()))
	})
	t.Run("asked for again, nothing is done", func(t *testing.T) {
		before := r.Snapshot()
		_, steps := r.result(r.run("commit"))
		after := r.Snapshot()
		for _, s := range []fake.Snapshot{before, after} {
			delete(s.Files, nodespec.LastRunPath("commit")) // the agent records its output
		}
		if diff := cmp.Diff(before, after); len(steps) > 0 || diff != "" {
			t.Errorf("%v %s", steps, diff)
		}
	})
	t.Run("there is nothing to go back to any more", func(t *testing.T) {
		line, _ := r.run("rollback")
		r.fails(line, verb.ReasonSpecNotFound)
	})
	t.Run("it repairs nothing: a drift that pods feel is the service's", func(t *testing.T) {
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		if _, steps := r.result(r.run("commit")); len(steps) > 0 {
			t.Error(steps)
		}
	})
}

func TestWhatIsKeptAsAFallback(t *testing.T) {
	t.Parallel()
	t.Run("nothing on a host that was never configured", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		line, _ := r.upgrade(newSpec(nil), newSpec(nil))
		if line.Type != verb.TypeRebooting || r.there(nodespec.FallbackPath) {
			t.Errorf("%s %v", line.Type, line.Failure)
		}
	})
	t.Run("nothing when the host has another spec than is named", func(t *testing.T) {
		t.Parallel()
		r := joined(t)
		next := r.next()
		if result, _ := r.result(r.upgrade(next, next)); result.Facts.Fallback != "" {
			t.Error(result.Facts.Fallback)
		}
	})
	t.Run("nothing when the host has the spec already", func(t *testing.T) {
		t.Parallel()
		r := joined(t)
		if result, _ := r.result(r.upgrade(r.full(), r.full())); result.Facts.Fallback != "" {
			t.Error(result.Facts.Fallback)
		}
	})
	t.Run("the last that was proven, when a third spec comes before the second is", func(t *testing.T) {
		t.Parallel()
		r := joined(t)
		former := r.full()
		next := r.next()
		r.result(r.upgrade(next, former))
		third := r.next()
		third.Files[0].Content = "maxPods: 90\n"
		if result, _ := r.result(r.upgrade(third, next)); result.Facts.Fallback != former.Digest() {
			t.Error(result.Facts.Fallback)
		}
	})
	t.Run("nothing after a removal", func(t *testing.T) {
		t.Parallel()
		r := joined(t)
		former := r.full()
		r.result(r.upgrade(r.next(), former))
		boot := r.BootID()
		if line, _ := r.run("remove"); line.Type == verb.TypeRebooting {
			r.awaitBoot(boot)
		}
		if r.there(nodespec.FallbackPath) {
			t.Error("it is still there")
		}
	})
	t.Run("none that nobody can read", func(t *testing.T) {
		t.Parallel()
		r := joined(t)
		r.must(r.Drive().WriteFile(nodespec.FallbackPath, []byte("{")))
		former := r.full()
		if result, _ := r.result(r.upgrade(r.next(), former)); result.Facts.Fallback != former.Digest() {
			t.Error(result.Facts.Fallback)
		}
	})
}

// An upgrade with a failing kubelet is rolled back, even if the upgrade changes containerd and the shims
// survive.
func TestRollbackOfAFailedUpgrade(t *testing.T) {
	t.Parallel()
	r := joined(t)
	former := r.full()
	r.versions = versions{"kubelet": "v2", "containerd": "v2"}
	next := r.full()
	mend := r.ServiceFailsToStart("kubelet", 255)
	line, _ := r.upgrade(next, former)
	r.fails(line, verb.ReasonServiceFailed)
	mend()
	if facts, _ := r.run("facts"); facts.Result.Facts.Fallback != former.Digest() {
		t.Fatalf("fallback %q", facts.Result.Facts.Fallback)
	}
	r.result(r.run("rollback"))
	for _, wanted := range former.Services {
		if service, _ := r.Service(wanted.Name); service.State != host.ServiceRunning || service.RunningCommandLine != wanted.CommandLine {
			t.Errorf("%s: %s %s", wanted.Name, service.State, service.RunningCommandLine)
		}
	}
	line, _ = r.run("verify")
	for _, check := range line.Result.Checks {
		if !check.Passed && !check.Advisory {
			t.Errorf("%s: %s", check.Name, check.Message)
		}
	}
}

// A rollback of a node with an unusable certificate needs another certificate. The command apply accepts the
// certificate, and the rollback then completes.
func TestRollbackThatNeedsACertificate(t *testing.T) {
	t.Parallel()
	r := joined(t)
	former := r.full()
	r.result(r.upgrade(r.next(), former))
	r.must(r.Host().Files.Remove(r.ctx, pki+`\kubelet-client-current.pem`))
	result, _ := r.result(r.run("rollback"))
	if !slices.Contains(result.Plan.Needs, nodespec.NeedCertificate) || result.Facts.Fallback != former.Digest() {
		t.Fatalf("needs %v, fallback %q", result.Plan.Needs, result.Facts.Fallback)
	}
	former.Identity.Certificate = r.sign(result.Facts.Identity.Request)
	r.result(r.apply(former))
	result, steps := r.result(r.run("rollback"))
	if len(result.Plan.Needs) > 0 || len(steps) > 0 || result.Facts.Fallback != "" || result.Facts.Applied != former.Digest() {
		t.Errorf("needs %v, steps %v, fallback %q", result.Plan.Needs, steps, result.Facts.Fallback)
	}
}

// The agent's service does not revert an interrupted rollback, but continues it as far as permitted.
func TestServiceGoesOnWithARollback(t *testing.T) {
	t.Parallel()
	r := node(t)
	former := r.full()
	r.versions = versions{"kubelet": "v2", "kube-proxy": "v2"}
	r.result(r.upgrade(r.full(), former)) // with the same agent: another agent would be stopped first
	r.pass(timeouts.DriftPoll)
	killed := false
	r.OnOperation(func(o fake.Operation) error {
		if o.Process.Service != "" || o.Interface+"."+o.Method != "Services.Configure" || killed {
			return nil
		}
		killed = true
		o.Process.Kill()
		return errKilled
	})
	r.run("rollback")
	if !killed {
		t.Fatal("nothing was killed")
	}
	r.pass(timeouts.DriftCheck)
	for _, wanted := range former.Services {
		service, _ := r.Service(wanted.Name)
		if service.State != host.ServiceRunning || service.RunningCommandLine != wanted.CommandLine {
			t.Errorf("%s: %s %s", wanted.Name, service.State, service.RunningCommandLine)
		}
	}
	result, _ := r.result(r.run("rollback"))
	if result.Facts.Applied != former.Digest() || len(result.Plan.Steps) > 0 {
		t.Errorf("applied %s", result.Facts.Applied)
	}
}
