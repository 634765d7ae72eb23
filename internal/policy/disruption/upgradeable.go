package disruption

import (
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// Upgradeable decides whether OLM may replace the operator. An upgrade is refused while a disruption is in progress
// and within its deadline. Waiting, paused and failed nodes do not prevent an upgrade of the operator, because the
// release that fixes such nodes must be installable. The same applies to nodes with an old kubelet.
func Upgradeable(pool NodePool, settings Settings, now time.Time) Decision {
	s := newDecisionInput(pool, Request{}, settings, now)
	decision := policy.Decide(s, "No Windows node is being disrupted.", []policy.Check[*decisionInput]{
		{Name: "DisruptionInProgress", Reason: v1alpha1.ReasonDisruptionInProgress, Violation: disruptionInProgress},
	})
	if decision.Allowed {
		return Decision{Decision: decision}
	}
	return Decision{Decision: decision, After: s.retryDelay()}
}

func disruptionInProgress(s *decisionInput) string {
	if len(s.entries) == 0 {
		return ""
	}
	var words []string
	for _, d := range s.entries {
		words = append(words, d.describeDisruption())
		s.retryAt(d.until)
	}
	return fmt.Sprintf("%s. The operator can be upgraded when that is done, or at %s at the latest.", listSome(words),
		formatTime(s.lastUntil()))
}

func (s *decisionInput) lastUntil() time.Time {
	var last time.Time
	for _, d := range s.entries {
		if d.until.After(last) {
			last = d.until
		}
	}
	return last
}
