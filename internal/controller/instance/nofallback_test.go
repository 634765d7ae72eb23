package instance

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/disturbance"
)

// A host that cannot be rolled back is reported before its node is changed, while it waits for its turn.
func TestAHostWithoutAFallbackIsReportedBeforeItsChange(t *testing.T) {
	why := "the former agent is not on the host"
	waiting := func(t *testing.T, facts plan.Facts) (events []string, next string) {
		x, gate := draining(t)
		gate.held, gate.closed = nil, true
		gate.refusal = disturbance.Decision{Decision: policy.Decision{Reason: v1alpha1.ReasonWaitingForTurn, Message: "full"}}
		s := x.answered(&facts)
		spec, err := x.rooms().specs.Of(s, trialSubnet)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s.Session.Turn, s.Session.Facts = spec.Digest(), &facts // what the host has said for this spec
			o := x.rooms().turn.Pass(t.Context(), s, spec, nil)
			if o == nil || o.Reason != v1alpha1.ReasonWaitingForTurn {
				t.Fatalf("%+v", o)
			}
			next = o.Next
		}
		return x.told(), next
	}
	t.Run("once, and with what the node waits for", func(t *testing.T) {
		events, next := waiting(t, plan.Facts{Applied: "a", NoFallback: why})
		if len(events) != 1 || !strings.Contains(events[0], "NoFallback") || !strings.Contains(events[0], why) {
			t.Errorf("events %q", events)
		}
		if !strings.Contains(next, why) {
			t.Errorf("next: %s", next)
		}
	})
	t.Run("but one with a fallback is not", func(t *testing.T) {
		if events, next := waiting(t, plan.Facts{Applied: "a"}); len(events) > 0 || strings.Contains(next, "rolled back") {
			t.Errorf("events %q, next: %s", events, next)
		}
	})
}
