package agent_test

import (
	"fmt"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// retryKilled repeats a killed command until it returns a result.
func (r *rig) retryKilled(run func() (agentapi.Line, []string)) agentapi.Line {
	r.Helper()
	for range 10 {
		if line, _ := run(); line.Type != "" {
			return line
		}
		r.awaitRunning()
	}
	r.Fatal("it has no end")
	return agentapi.Line{}
}

// Each command, killed before any of its changes, continues when repeated.
func TestUpgrade_ContinuesAfterKill(t *testing.T) {
	t.Parallel()
	origin := newConfiguredRig(t)
	former := origin.fullSpec()
	before := withoutChance(origin.Snapshot())
	origin.mustResult(origin.applyUpgrade(origin.nextSpec(), former))
	origin.mustResult(origin.run("commit"))
	after := withoutChance(origin.Snapshot())

	type scenario struct {
		prepare func(r *rig)
		killed  func(r *rig) (agentapi.Line, []string)
		then    func(r *rig)
		want    fake.Snapshot
	}
	upgrade := func(r *rig) (agentapi.Line, []string) { return r.applyUpgrade(r.nextSpec(), former) }
	rollback := func(r *rig) (agentapi.Line, []string) {
		return r.run("rollback", "--digest", "sha256:"+former.Digest())
	}
	settle := func(r *rig) (agentapi.Line, []string) { return r.run("commit") }
	answered := func(verb func(*rig) (agentapi.Line, []string)) func(*rig) {
		return func(r *rig) { r.mustResult(verb(r)) }
	}
	for name, s := range map[string]scenario{
		"an upgrade, which then goes on": {func(*rig) {}, upgrade, answered(settle), after},
		"a rollback":                     {answered(upgrade), rollback, func(*rig) {}, before},
		"a settlement":                   {answered(upgrade), settle, func(*rig) {}, after},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counting := &killer{}
			reference := newConfiguredRig(t)
			s.prepare(reference)
			counting.registerHook(reference)
			s.killed(reference)
			for n := range killPoints(counting.seen) {
				t.Run(fmt.Sprintf("before change %d", n), func(t *testing.T) {
					t.Parallel()
					r := newConfiguredRig(t)
					s.prepare(r)
					k := &killer{n: n}
					k.registerHook(r)
					if line := r.retryKilled(func() (agentapi.Line, []string) { return s.killed(r) }); line.Type != agentapi.TypeResult {
						t.Fatalf("killed before %s: %s %v", k.at, line.Type, line.Failure)
					}
					s.then(r)
					t.Log("killed before " + k.at)
					compareSnapshots(t, s.want, withoutChance(r.Snapshot()))
					if r.hasPaths(nodespec.RollbackTargetPath) {
						t.Error("the fallback is still there")
					}
				})
			}
		})
	}
}

// An upgrade that was interrupted anywhere can be rolled back without being completed first.
func TestRollback_RevertsInterruptedUpgrade(t *testing.T) {
	t.Parallel()
	origin := newConfiguredRig(t)
	former := origin.fullSpec()
	want := withoutChance(origin.Snapshot())
	reference := &killer{}
	reference.registerHook(origin)
	origin.mustResult(origin.applyUpgrade(origin.nextSpec(), former))
	for n := range killPoints(reference.seen) {
		t.Run(fmt.Sprintf("before change %d", n), func(t *testing.T) {
			t.Parallel()
			r := newConfiguredRig(t)
			k := &killer{n: n}
			k.registerHook(r)
			r.applyUpgrade(r.nextSpec(), former)
			t.Log("killed before " + k.at)
			r.mustResult(r.run("rollback", "--digest", "sha256:"+former.Digest()))
			compareSnapshots(t, want, withoutChance(r.Snapshot()))
		})
	}
}
