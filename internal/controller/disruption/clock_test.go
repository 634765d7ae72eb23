package disruption_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// A kubelet dates reports by the clock of the host, and may report any time.
func TestAHostsClockSteersNobodysTurn(t *testing.T) {
	shared := newWorld(t)
	for name, ahead := range map[string]time.Duration{
		"right": 0, "two hours ahead": 2 * time.Hour, "two hours behind": -2 * time.Hour, "in the year 2096": 70 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			w := shared.sub(t)
			w.ahead = ahead
			broken, asking := w.host("byoh-1", version), w.host("byoh-2", version)
			first := w.start("first", false)
			first.reconcile()
			w.report(broken.Name, false, "v1.35.1")
			w.pass(time.Second)
			first.reconcile()
			if decision := first.acquire(asking, v1alpha1.CauseReboot); decision.Allowed {
				t.Errorf("a node has just become NotReady, and another one is disturbed: %+v", decision)
			}
			w.pass(disruptionpolicy.DefaultFailureDeadline - time.Minute)
			second := w.start("second", false)
			second.reconcile()
			if decision := second.acquire(asking, v1alpha1.CauseReboot); decision.Allowed || decision.After > time.Minute {
				t.Errorf("before the deadline, an operator that has just started says %+v", decision)
			}
			w.pass(time.Minute)
			second.reconcile()
			if decision := second.acquire(asking, v1alpha1.CauseReboot); !decision.Allowed {
				t.Errorf("after the deadline: %+v", decision)
			}
		})
		t.Run(name+", for the first node with a version", func(t *testing.T) {
			w := shared.sub(t)
			w.ahead = ahead
			canary, next := w.host("byoh-1", version), w.host("byoh-2", before)
			p := w.start("one", false)
			p.reconcile()
			w.administer(func(s *v1alpha1.WindowsDisruptionPolicySpec) { s.CanarySoak = &metav1.Duration{Duration: time.Hour} })
			w.report(canary.Name, false, "v1.35.1")
			w.pass(time.Minute)
			p.reconcile()
			w.report(canary.Name, true, "v1.35.1")
			w.pass(time.Minute)
			p.reconcile()
			if decision := p.acquire(next, v1alpha1.CauseUpgrade); decision.Allowed || decision.After != time.Hour {
				t.Errorf("it has just come back, and the next one: %+v", decision)
			}
			w.pass(time.Hour)
			if decision := p.acquire(next, v1alpha1.CauseUpgrade); !decision.Allowed {
				t.Errorf("it has been Ready for an hour, and the next one: %+v", decision)
			}
		})
	}
	t.Run("what was seen is known when the policy was deleted, and when a node has changed while no operator ran", func(t *testing.T) {
		w := shared.sub(t)
		broken, asking := w.host("byoh-1", version), w.host("byoh-2", version)
		first := w.start("first", false)
		w.report(broken.Name, false, "v1.35.1")
		first.reconcile()
		w.pass(disruptionpolicy.DefaultFailureDeadline)
		w.check(w.admin.Delete(t.Context(), w.policy()))
		first.reconcile()
		if decision := first.acquire(asking, v1alpha1.CauseReboot); !decision.Allowed {
			t.Errorf("the policy was deleted, and with it what the operator had seen: %+v", decision)
		}
		first.release(asking)

		w.report(broken.Name, true, "v1.35.1")
		w.pass(time.Hour)
		w.report(broken.Name, false, "v1.35.1")
		second := w.start("second", false)
		if decision := second.acquire(asking, v1alpha1.CauseReboot); decision.Allowed {
			t.Errorf("the node has become NotReady a moment ago: %+v", decision)
		}
	})
}
