package disruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// scene is a request with all inputs of its decision.
type scene struct {
	Request
	pool     NodePool
	settings Settings
	now      time.Time
	// candidate is the node of the request. A node that is not in the pool has never been in service; only the limit
	// of all nodes applies to it.
	candidate Node
	// own is the candidate's entry if it counts, and entries are all other entries that count.
	own     *standingDisruption
	entries []standingDisruption
	// notes are the entries of other nodes that have failed but not ended.
	notes []standingDisruption
	// again is the time when the decision may change without another event; zero if it cannot.
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

// askAgain records the earliest time when the decision may change.
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

// failedNote describes the first failed entry that matches.
func (s *scene) failedNote(of func(standingDisruption) bool) string {
	d, found := first(s.notes, of)
	if !found {
		return ""
	}
	return fmt.Sprintf("%s, and did not recover by %s.", d.describe(), moment(d.until))
}
