package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// nextSpec returns the spec of a later operator release: another agent, other programs, files, rules and variables.
// containerd is unchanged, because its shims would outlive a rollback.
func (r *rig) nextSpec() nodespec.NodeSpec {
	r.versions = versions{"kubelet": "v2", "kube-proxy": "v2", "cni": "v2"}
	spec := r.upgradedSpec()
	spec.Files[0].Content = "kind: KubeletConfiguration\nmaxPods: 100\n"
	spec.Files = append(spec.Files, nodespec.File{Path: `C:\k\registration`, Content: "new\n", Access: host.AccessInherited})
	spec.Environment = map[string]string{"NO_PROXY": ".svc"}
	spec.Firewall = []host.FirewallRule{
		{Name: "WindowsExporter", DisplayName: "WindowsExporter", Protocol: "TCP", LocalPort: 9182, Enabled: true, Allow: true},
	}
	return spec
}

// applyUpgrade applies a spec and keeps the former spec as rollback target.
func (r *rig) applyUpgrade(spec, former nodespec.NodeSpec) (agentapi.Line, []string) {
	r.Helper()
	args := r.sendSpec(spec)
	if args == nil {
		return agentapi.Line{}, nil
	}
	return r.run(append([]string{"apply", "--rollback-to", "sha256:" + former.Digest()}, args...)...)
}

// mustResult fails the test unless the last line is a result.
func (r *rig) mustResult(line agentapi.Line, steps []string) (*agentapi.Result, []string) {
	r.Helper()
	if line.Type != agentapi.TypeResult {
		r.Fatalf("%s %v", line.Type, line.Failure)
	}
	return line.Result, steps
}

func (r *rig) hasPaths(paths ...string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool { _, err := r.Drive().Stat(path); return err != nil })
}

// rollbackPaths returns the paths that a rollback to the first spec needs.
func rollbackPaths() []string {
	paths := []string{nodespec.AgentPath(hexDigest(agentProgram))}
	for _, release := range newSpec(nil).Releases {
		paths = append(paths, release.Manifest(), release.Path(release.Files[0]))
	}
	return paths
}

//
func TestUpgrade_KeepsRollbackTarget(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	former := r.fullSpec()
	joined := withoutChance(r.Snapshot())
	next := r.nextSpec()
	result, _ := r.mustResult(r.applyUpgrade(next, former))

	t.Run("the former spec is kept, and all that it needs", func(t *testing.T) {
		if result.Facts.RollbackTarget != former.Digest() || result.Facts.Applied != next.Digest() {
			t.Errorf("fallback %s, applied %s", result.Facts.RollbackTarget, result.Facts.Applied)
		}
		if !r.hasPaths(rollbackPaths()...) {
			t.Error("something of it is gone")
		}
	})
	t.Run("the rest follows the new spec", func(t *testing.T) {
		got := r.Snapshot()
		if _, exists := got.Firewall["ContainerLogsPort"]; exists || got.Environment["HTTPS_PROXY"] != "" || got.Environment["NO_PROXY"] != ".svc" {
			t.Errorf("%v, %v", got.Firewall, got.Environment)
		}
	})
	t.Run("the agent's service repairs drift, and takes away nothing of it", func(t *testing.T) {
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.countEntries("ready", nodespec.ServiceAgent) > 1 }))
		r.advanceTime(timeouts.DriftPollInterval)
		r.must(r.Drive().WriteFile(`C:\k\registration`, []byte("other")))
		r.advanceTime(timeouts.DriftCheckInterval)
		if data, _ := r.Drive().ReadFile(`C:\k\registration`); string(data) != "new\n" {
			t.Errorf("got %q", data)
		}
		if !r.hasPaths(rollbackPaths()...) || !r.hasPaths(nodespec.RollbackTargetPath) {
			t.Error("something of it is gone")
		}
	})
	t.Run("applied again, nothing is done and it stays kept", func(t *testing.T) {
		result, steps := r.mustResult(r.applyUpgrade(next, next))
		if len(steps) > 0 || result.Facts.RollbackTarget != former.Digest() {
			t.Errorf("steps %v, fallback %s", steps, result.Facts.RollbackTarget)
		}
		if !r.hasPaths(rollbackPaths()...) {
			t.Error("something of it is gone")
		}
	})
	t.Run("a rollback brings the host back as it was, and needs nothing for that", func(t *testing.T) {
		requests := len(r.requests)
		result, steps := r.mustResult(r.run("rollback"))
		if result.Facts.RollbackTarget != "" || result.Facts.Applied != former.Digest() || len(result.Facts.RollbackReleases) > 0 || len(result.Plan.Needs) > 0 {
			t.Errorf("fallback %q, kept %v, applied %s, needs %v", result.Facts.RollbackTarget, result.Facts.RollbackReleases, result.Facts.Applied, result.Plan.Needs)
		}
		if len(steps) == 0 || slices.ContainsFunc(steps, func(step string) bool { return strings.HasPrefix(step, "InstallRelease") }) {
			t.Errorf("steps %v", steps)
		}
		compareSnapshots(t, joined, withoutChance(r.Snapshot()))
		if r.hasPaths(nodespec.RollbackTargetPath) || len(r.requests) != requests {
			t.Error("the fallback is still there, or a certificate was asked for")
		}
	})
	t.Run("asked for again, there is nothing to go back to", func(t *testing.T) {
		line, _ := r.run("rollback")
		r.checkFailure(line, agentapi.ReasonSpecNotFound, "the host has no rollback target")
		line, _ = r.run("rollback", "--digest", "sha256:"+next.Digest())
		r.checkFailure(line, agentapi.ReasonSpecNotFound)
		compareSnapshots(t, joined, withoutChance(r.Snapshot()))
	})
	t.Run("asked for again by its digest, it is done", func(t *testing.T) {
		result, steps := r.mustResult(r.run("rollback", "--digest", "sha256:"+former.Digest()))
		if len(steps) > 0 || result.Facts.Applied != former.Digest() {
			t.Errorf("steps %v", steps)
		}
	})
	t.Run("the service of the former agent works on", func(t *testing.T) {
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.countEntries("ready", nodespec.ServiceAgent) > 2 }))
		r.advanceTime(timeouts.DriftPollInterval)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(timeouts.DriftPollInterval)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
			t.Error("kube-proxy does not run")
		}
	})
	t.Run("removal still gives the host back", func(t *testing.T) {
		r.removeNode()
		compareSnapshots(t, r.before, r.Snapshot())
	})
}

func TestUpgrade_CommitDeletesRollbackTarget(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	former := r.fullSpec()
	next := r.nextSpec()
	r.mustResult(r.applyUpgrade(next, former))
	reference := newConfiguredRig(t)
	reference.mustApply(reference.nextSpec())

	result, steps := r.mustResult(r.run("commit"))
	t.Run("forgets the former spec and removes what was kept for it", func(t *testing.T) {
		if result.Facts.RollbackTarget != "" || len(result.Facts.RollbackReleases) > 0 || r.hasPaths(nodespec.RollbackTargetPath) || r.hasPaths(agentDirectory(agentProgram)) {
			t.Errorf("fallback %q", result.Facts.RollbackTarget)
		}
		if slices.ContainsFunc(steps, func(step string) bool { return !strings.HasPrefix(step, `RemovePath C:\k\releases\`) }) || len(steps) != 3 {
			t.Errorf("steps %v", steps)
		}
		compareSnapshots(t, withoutChance(reference.Snapshot()), withoutChance(r.Snapshot()))
	})
	t.Run("asked for again, nothing is done", func(t *testing.T) {
		before := r.Snapshot()
		_, steps := r.mustResult(r.run("commit"))
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
		r.checkFailure(line, agentapi.ReasonSpecNotFound)
	})
	t.Run("it repairs nothing: a drift that pods feel is the service's", func(t *testing.T) {
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		if _, steps := r.mustResult(r.run("commit")); len(steps) > 0 {
			t.Error(steps)
		}
	})
}

func TestRollbackTarget_KeepsLastVerifiedSpecOnly(t *testing.T) {
	t.Parallel()
	t.Run("nothing on a host that was never configured", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		line, _ := r.applyUpgrade(newSpec(nil), newSpec(nil))
		if line.Type != agentapi.TypeRebooting || r.hasPaths(nodespec.RollbackTargetPath) {
			t.Errorf("%s %v", line.Type, line.Failure)
		}
	})
	t.Run("nothing when the host has another spec than is named", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		next := r.nextSpec()
		if result, _ := r.mustResult(r.applyUpgrade(next, next)); result.Facts.RollbackTarget != "" {
			t.Error(result.Facts.RollbackTarget)
		}
	})
	t.Run("nothing when the host has the spec already", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		if result, _ := r.mustResult(r.applyUpgrade(r.fullSpec(), r.fullSpec())); result.Facts.RollbackTarget != "" {
			t.Error(result.Facts.RollbackTarget)
		}
	})
	t.Run("the last that was proven, when a third spec comes before the second is", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		former := r.fullSpec()
		next := r.nextSpec()
		r.mustResult(r.applyUpgrade(next, former))
		third := r.nextSpec()
		third.Files[0].Content = "maxPods: 90\n"
		if result, _ := r.mustResult(r.applyUpgrade(third, next)); result.Facts.RollbackTarget != former.Digest() {
			t.Error(result.Facts.RollbackTarget)
		}
	})
	t.Run("nothing after a removal", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		former := r.fullSpec()
		r.mustResult(r.applyUpgrade(r.nextSpec(), former))
		boot := r.BootID()
		if line, _ := r.run("remove"); line.Type == agentapi.TypeRebooting {
			r.awaitBoot(boot)
		}
		if r.hasPaths(nodespec.RollbackTargetPath) {
			t.Error("it is still there")
		}
	})
	t.Run("none that nobody can read", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		r.must(r.Drive().WriteFile(nodespec.RollbackTargetPath, []byte("{")))
		former := r.fullSpec()
		if result, _ := r.mustResult(r.applyUpgrade(r.nextSpec(), former)); result.Facts.RollbackTarget != former.Digest() {
			t.Error(result.Facts.RollbackTarget)
		}
	})
}

// An upgrade with a failing kubelet is rolled back, even if the upgrade changes containerd and the shims
// survive.
func TestRollback_RevertsFailedUpgrade(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	former := r.fullSpec()
	r.versions = versions{"kubelet": "v2", "containerd": "v2"}
	next := r.fullSpec()
	restore := r.FailServiceStart("kubelet", 255)
	line, _ := r.applyUpgrade(next, former)
	r.checkFailure(line, agentapi.ReasonServiceFailed)
	restore()
	if facts, _ := r.run("facts"); facts.Result.Facts.RollbackTarget != former.Digest() {
		t.Fatalf("fallback %q", facts.Result.Facts.RollbackTarget)
	}
	r.mustResult(r.run("rollback"))
	for _, want := range former.Services {
		if service, _ := r.Service(want.Name); service.State != host.ServiceRunning || service.RunningCommandLine != want.CommandLine {
			t.Errorf("%s: %s %s", want.Name, service.State, service.RunningCommandLine)
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
func TestRollback_CompletesAfterNewCertificate(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	former := r.fullSpec()
	r.mustResult(r.applyUpgrade(r.nextSpec(), former))
	r.must(r.Host().Files.Remove(r.ctx, pki+`\kubelet-client-current.pem`))
	result, _ := r.mustResult(r.run("rollback"))
	if !slices.Contains(result.Plan.Needs, nodespec.NeedCertificate) || result.Facts.RollbackTarget != former.Digest() {
		t.Fatalf("needs %v, fallback %q", result.Plan.Needs, result.Facts.RollbackTarget)
	}
	former.Identity.Certificate = r.signRequest(result.Facts.Identity.Request)
	r.mustResult(r.apply(former))
	result, steps := r.mustResult(r.run("rollback"))
	if len(result.Plan.Needs) > 0 || len(steps) > 0 || result.Facts.RollbackTarget != "" || result.Facts.Applied != former.Digest() {
		t.Errorf("needs %v, steps %v, fallback %q", result.Plan.Needs, steps, result.Facts.RollbackTarget)
	}
}

// The agent's service does not revert an interrupted rollback, but continues it as far as permitted.
func TestService_ContinuesInterruptedRollback(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	former := r.fullSpec()
	r.versions = versions{"kubelet": "v2", "kube-proxy": "v2"}
	r.mustResult(r.applyUpgrade(r.fullSpec(), former)) // with the same agent: another agent would be stopped first
	r.advanceTime(timeouts.DriftPollInterval)
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
	r.advanceTime(timeouts.DriftCheckInterval)
	for _, want := range former.Services {
		service, _ := r.Service(want.Name)
		if service.State != host.ServiceRunning || service.RunningCommandLine != want.CommandLine {
			t.Errorf("%s: %s %s", want.Name, service.State, service.RunningCommandLine)
		}
	}
	result, _ := r.mustResult(r.run("rollback"))
	if result.Facts.Applied != former.Digest() || len(result.Plan.Steps) > 0 {
		t.Errorf("applied %s", result.Facts.Applied)
	}
}
