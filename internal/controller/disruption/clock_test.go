package disruption_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// A kubelet dates reports by the clock of the host, and may report any time.
func TestGate_HostClockDoesNotAffectSlots(t *testing.T) {
	shared := newWorld(t)
	for name, ahead := range map[string]time.Duration{
		"right": 0, "two hours ahead": 2 * time.Hour, "two hours behind": -2 * time.Hour, "in the year 2096": 70 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			w := shared.forSubtest(t)
			w.ahead = ahead
			broken, asking := w.createHost("byoh-1", version), w.createHost("byoh-2", version)
			first := w.start("first", false)
			first.reconcile()
			w.reportNode(broken.Name, false, "v1.35.1")
			w.advanceClock(time.Second)
			first.reconcile()
			if decision := first.acquireSlot(asking, v1alpha1.CauseReboot); decision.Allowed {
				t.Errorf("a node has just become NotReady, and another one is disturbed: %+v", decision)
			}
			w.advanceClock(disruptionpolicy.DefaultFailureDeadline - time.Minute)
			second := w.start("second", false)
			second.reconcile()
			if decision := second.acquireSlot(asking, v1alpha1.CauseReboot); decision.Allowed || decision.After > time.Minute {
				t.Errorf("before the deadline, an operator that has just started says %+v", decision)
			}
			w.advanceClock(time.Minute)
			second.reconcile()
			if decision := second.acquireSlot(asking, v1alpha1.CauseReboot); !decision.Allowed {
				t.Errorf("after the deadline: %+v", decision)
			}
		})
		t.Run(name+", for the first node with a version", func(t *testing.T) {
			w := shared.forSubtest(t)
			w.ahead = ahead
			canary, next := w.createHost("byoh-1", version), w.createHost("byoh-2", before)
			p := w.start("one", false)
			p.reconcile()
			w.editPolicy(func(s *v1alpha1.WindowsDisruptionPolicySpec) { s.CanarySoak = &metav1.Duration{Duration: time.Hour} })
			w.reportNode(canary.Name, false, "v1.35.1")
			w.advanceClock(time.Minute)
			p.reconcile()
			w.reportNode(canary.Name, true, "v1.35.1")
			w.advanceClock(time.Minute)
			p.reconcile()
			if decision := p.acquireSlot(next, v1alpha1.CauseUpgrade); decision.Allowed || decision.After != time.Hour {
				t.Errorf("it has just come back, and the next one: %+v", decision)
			}
			w.advanceClock(time.Hour)
			if decision := p.acquireSlot(next, v1alpha1.CauseUpgrade); !decision.Allowed {
				t.Errorf("it has been Ready for an hour, and the next one: %+v", decision)
			}
		})
	}
	t.Run("what was seen is known when the policy was deleted, and when a node has changed while no operator ran", func(t *testing.T) {
		w := shared.forSubtest(t)
		broken, asking := w.createHost("byoh-1", version), w.createHost("byoh-2", version)
		first := w.start("first", false)
		w.reportNode(broken.Name, false, "v1.35.1")
		first.reconcile()
		w.advanceClock(disruptionpolicy.DefaultFailureDeadline)
		w.requireNoError(w.admin.Delete(t.Context(), w.getPolicy()))
		first.reconcile()
		if decision := first.acquireSlot(asking, v1alpha1.CauseReboot); !decision.Allowed {
			t.Errorf("the policy was deleted, and with it what the operator had seen: %+v", decision)
		}
		first.releaseSlot(asking)

		w.reportNode(broken.Name, true, "v1.35.1")
		w.advanceClock(time.Hour)
		w.reportNode(broken.Name, false, "v1.35.1")
		second := w.start("second", false)
		if decision := second.acquireSlot(asking, v1alpha1.CauseReboot); decision.Allowed {
			t.Errorf("the node has become NotReady a moment ago: %+v", decision)
		}
	})
}
