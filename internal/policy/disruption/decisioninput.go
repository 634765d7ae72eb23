package disruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// decisionInput is a request with all inputs of its decision.
type decisionInput struct {
	Request
	pool     NodePool
	settings Settings
	now      time.Time
	// candidate is the node of the request. A node that is not in the pool has never been in service; only the limit
	// of all nodes applies to it.
	candidate Node
	// ownEntry is the candidate's entry if it counts, and entries are all other entries that count.
	ownEntry *timedDisruption
	entries  []timedDisruption
	// failedEntries are the entries of other nodes that have failed but not ended.
	failedEntries []timedDisruption
	// retryTime is the time when the decision may change without another event; zero if it cannot.
	retryTime time.Time
}

func newDecisionInput(pool NodePool, request Request, settings Settings, now time.Time) *decisionInput {
	s := &decisionInput{Request: request, pool: pool, settings: settings, now: now}
	s.candidate, _ = findFirst(pool.Nodes, func(n Node) bool { return n.Instance == request.Instance })
	for _, d := range pool.Disruptions {
		ended, failed, _ := Ended(d, pool, settings, now)
		standing := timedDisruption{Disruption: d, until: d.Since.Add(settings.FailureDeadline)}
		switch {
		case d.Instance == request.Instance:
			if !ended && !failed && d.InstanceUID == request.UID {
				s.ownEntry = &standing
			}
		case failed && !ended:
			s.failedEntries = append(s.failedEntries, standing)
		case !ended:
			s.entries = append(s.entries, standing)
		}
	}
	return s
}

// retryAt records the earliest time when the decision may change.
func (s *decisionInput) retryAt(at time.Time) {
	if at.After(s.now) && (s.retryTime.IsZero() || at.Before(s.retryTime)) {
		s.retryTime = at
	}
}

func (s *decisionInput) retryDelay() time.Duration {
	if s.retryTime.IsZero() {
		return 0
	}
	return s.retryTime.Sub(s.now)
}

// hasActiveEntry reports whether an instance has an entry that counts.
func (s *decisionInput) hasActiveEntry(instance string) bool {
	return slices.ContainsFunc(s.entries, func(d timedDisruption) bool { return d.Instance == instance })
}

func (s *decisionInput) isExempt() bool { return isExemptCause(s.Cause) }

func isExemptCause(cause v1alpha1.DisruptionCause) bool {
	return cause == v1alpha1.CauseRepair || cause == v1alpha1.CauseRemoval
}

// describeFailedEntry describes the first failed entry that matches.
func (s *decisionInput) describeFailedEntry(of func(timedDisruption) bool) string {
	d, found := findFirst(s.failedEntries, of)
	if !found {
		return ""
	}
	return fmt.Sprintf("%s, and did not recover by %s.", d.describeDisruption(), formatTime(d.until))
}
