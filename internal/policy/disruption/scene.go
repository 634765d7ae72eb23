package disruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// scene is a request with all that is decided on.
type scene struct {
	Request
	pool     NodePool
	settings Settings
	now      time.Time
	// candidate is the node of the request. One that is not among the pool's has never been in service: only the limit
	// of all nodes is for it.
	candidate Node
	// own is the candidate's entry if it counts, and entries are all others that count.
	own     *standingDisruption
	entries []standingDisruption
	// notes are the entries of others that have failed and not ended.
	notes []standingDisruption
	// again is when time alone may change the answer, zero when it may not.
	again time.Time
}

func newScene(pool NodePool, request Request, settings Settings, now time.Time) *scene {
	s := &scene{Request: request, pool: pool, settings: settings, now: now}
	s.candidate, _ = first(pool.Nodes, func(n Node) bool { return n.Instance == request.Instance })
	for _, d := range pool.Disruptions {
		ended, failed, _ := Ended(d, pool, settings, now)
		standing := standingDisruption{Disruption: d, until: d.Since.Add(settings.FailureDeadline)}
		switch {
		case d.Instance == request.Instance:
			if !ended && !failed && d.InstanceUID == request.UID {
				s.own = &standing
			}
		case failed && !ended:
			s.notes = append(s.notes, standing)
		case !ended:
			s.entries = append(s.entries, standing)
		}
	}
	return s
}

// askAgain remembers the earliest of the times at which the answer may change.
func (s *scene) askAgain(at time.Time) {
	if at.After(s.now) && (s.again.IsZero() || at.Before(s.again)) {
		s.again = at
	}
}

func (s *scene) after() time.Duration {
	if s.again.IsZero() {
		return 0
	}
	return s.again.Sub(s.now)
}

// busy reports whether an instance has an entry that counts.
func (s *scene) busy(instance string) bool {
	return slices.ContainsFunc(s.entries, func(d standingDisruption) bool { return d.Instance == instance })
}

func (s *scene) exempt() bool { return exempt(s.Cause) }

func exempt(cause v1alpha1.DisruptionCause) bool {
	return cause == v1alpha1.CauseRepair || cause == v1alpha1.CauseRemoval
}

// failedNote describes the first entry that has failed and is of a kind.
func (s *scene) failedNote(of func(standingDisruption) bool) string {
	d, found := first(s.notes, of)
	if !found {
		return ""
	}
	return fmt.Sprintf("%s, and did not recover by %s.", d.describe(), moment(d.until))
}
