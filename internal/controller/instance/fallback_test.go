package instance

import (
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// A missing rollback target is reported before the node is changed, while the node waits for a disruption slot.
func TestRollback_MissingTargetReportedBeforeChange(t *testing.T) {
	reason := "the former agent is not on the host"
	waiting := func(t *testing.T, facts plan.Facts) (events []string, next string) {
		x, gate := newDrainingTrial(t)
		gate.held, gate.closed = nil, true
		gate.refusal = disruptionpolicy.Decision{Decision: policy.Decision{Reason: v1alpha1.ReasonMaxUnavailableReached, Message: "full"}}
		s := x.newRespondingScope(&facts)
		spec, err := x.newDependencies().specs.Build(s, nodeWithSubnet(trialSubnet))
		if err != nil {
			t.Fatal(err)
		}
		d := x.newDependencies()
		for range 2 {
			s.Session.PendingDisruption, s.Host.Facts = spec.Digest(), &facts // the facts reported for this spec
			_, o := d.disruptor.Prepare(t.Context(), s, spec)
			if o == nil || o.Reason != v1alpha1.ReasonMaxUnavailableReached {
				t.Fatalf("%+v", o)
			}
			next = o.NextAction
		}
		d.events.Flush()
		return x.popEvents(), next
	}
	t.Run("once, and with what the node waits for", func(t *testing.T) {
		events, next := waiting(t, plan.Facts{Applied: "a", NoRollbackReason: reason})
		if len(events) != 1 || !strings.Contains(events[0], "RollbackUnavailable") || !strings.Contains(events[0], reason) {
			t.Errorf("events %q", events)
		}
		if !strings.Contains(next, reason) {
			t.Errorf("next: %s", next)
		}
	})
	t.Run("but one with a fallback is not", func(t *testing.T) {
		if events, next := waiting(t, plan.Facts{Applied: "a"}); len(events) > 0 || strings.Contains(next, "rolled back") {
			t.Errorf("events %q, next: %s", events, next)
		}
	})
}

// A host is rolled back by the agent that applied the rollback target, not by the operator's own agent.
func TestRollback_RunByFormerAgent(t *testing.T) {
	x, h := newFailedTrial(t)
	x.reconcile()
	lines := h.commandLines()
	if path := nodespec.AgentPath(plan.Digest(formerProgram)); !slices.Contains(lines, path+" rollback") {
		t.Errorf("run were %q", lines)
	}
}

// Entries that this release cannot restore are reported before the ledger is deleted with the agent.
func TestRemoval_UnrestoredEntriesReported(t *testing.T) {
	for name, c := range map[string]struct {
		ledger string
		events int
	}{
		"a later release's entries": {`{"scheduledTasks": {"backup": {"existed": true}}}`, 1},
		"nothing":                   {`{"routes": {}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			x.asNode(machineInstance(), x.key.Hash())
			h := x.withAgent()
			s := x.newRespondingScope(nil)
			spec, err := x.newDependencies().specs.Build(s, nodeWithSubnet(trialSubnet))
			if err != nil {
				t.Fatal(err)
			}
			h.storeSpec(spec)
			if err := h.machine.Drive().WriteFile(nodespec.LedgerPath, []byte(c.ledger)); err != nil {
				t.Fatal(err)
			}
			s.Instance.Status.HostKey = nil
			d := x.newDependencies()
			for _, phase := range []phaseFunc{d.connect.reconcile, d.removal.RestoreHost} {
				if o := x.runPhase(s, phase); o != nil {
					t.Fatalf("%+v", o)
				}
			}
			d.events.Flush()
			events := slices.DeleteFunc(x.popEvents(), func(event string) bool { return !strings.Contains(event, "HostNotRestored") })
			if len(events) != c.events || c.events > 0 && !strings.Contains(events[0], "scheduledTasks") {
				t.Errorf("events %q", events)
			}
		})
	}
}
