// Package disruption reads the spec of a WindowsDisruptionPolicy, decides whether a node may be disrupted now, and judges
// the disruptions under way. Its inputs are all nodes, and the policy's settings and status. It writes nothing and
// disrupts nothing: the gate does that.
package disruption

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// Request asks for one node to be disturbed.
type Request struct {
	Instance string
	UID      types.UID
	Cause    v1alpha1.DisruptionCause
	// Version is the version of the operator that the node is brought to.
	Version string
	// Configuration identifies the settings of the cluster and the operator that the node is brought to: see
	// nodespec.Configuration. Empty when they are not known; then only the version is judged.
	Configuration string
	// Begun is true when the host was changed already in the disturbance that goes on, and is not what it was.
	Begun bool
	// Replaces is true when its Machine is to be deleted.
	Replaces bool
}

// Decision says whether a node may be disturbed now.
type Decision struct {
	policy.Decision
	// After is when to ask again at the latest, where time alone may change the answer; zero: when something else changes.
	After time.Duration
}

// ForAll reports whether a refusal holds for every other node too.
func (d Decision) ForAll() bool {
	return d.Reason == v1alpha1.ReasonDisruptionPolicyInvalid || d.Reason == v1alpha1.ReasonOutsideMaintenanceWindow
}

// StandsStill reports whether a refusal ends with time, or with an administrator's change of the policy or of a failed
// node, and not with a change of other nodes.
func (d Decision) StandsStill() bool {
	switch d.Reason {
	case v1alpha1.ReasonDisruptionsPaused, v1alpha1.ReasonDisruptionPolicyInvalid, v1alpha1.ReasonOutsideMaintenanceWindow,
		v1alpha1.ReasonCanaryFailed, v1alpha1.ReasonStoppedOnFailure:
		return true
	}
	return false
}

// Allow decides whether one node may be disturbed now. A node with its own entry that still counts continues under any
// policy, as far as GoesOn allows. Any other node is decided on again, and so is one whose entry has failed; that entry
// then also begins again, with another Since.
func Allow(pool NodePool, request Request, settings Settings, now time.Time) Decision {
	s := newScene(pool, request, settings, now)
	if s.own != nil && GoesOn(s.own.Disruption, request) {
		return Decision{Decision: policy.Decision{Allowed: true, Message: s.own.describe() + " already."}}
	}
	// A wait for an administrator is reported before a wait for a time, and that before a wait for other nodes.
	decision := policy.Decide(s, "The disruption policy allows the disruption of this node now.", []policy.Check[*scene]{
		{Name: "Instance", Reason: v1alpha1.ReasonDisruptionInProgress, Broken: sameInstance},
		{Name: "Valid", Reason: v1alpha1.ReasonDisruptionPolicyInvalid, Broken: unlessExempt(policyValid)},
		{Name: "Paused", Reason: v1alpha1.ReasonDisruptionsPaused, Broken: unlessExempt(notPaused)},
		{Name: "StopOnFailure", Reason: v1alpha1.ReasonStoppedOnFailure, Broken: unlessExempt(noneFailed)},
		{Name: "CanaryFailed", Reason: v1alpha1.ReasonCanaryFailed, Broken: unlessExempt(canaryNotFailed)},
		{Name: "MaintenanceWindow", Reason: v1alpha1.ReasonOutsideMaintenanceWindow, Broken: unlessExempt(windowOpen)},
		{Name: "CanarySoaking", Reason: v1alpha1.ReasonCanarySoaking, Broken: unlessExempt(canarySoaked)},
		{Name: "LastAvailableMachine", Reason: v1alpha1.ReasonLastAvailableMachine, Broken: unlessRemoved(anotherRuns)},
		{Name: "MaxUnavailable", Reason: v1alpha1.ReasonMaxUnavailableReached, Broken: withinLimit},
		{Name: "PoolMaxUnavailable", Reason: v1alpha1.ReasonMaxUnavailableReached, Broken: withinPoolLimit},
	})
	if decision.Allowed {
		return Decision{Decision: decision}
	}
	return Decision{Decision: decision, After: s.after()}
}

// GoesOn reports whether a request continues a counting entry of its instance. A repair or a removal continues only as
// such, and nothing continues as an upgrade to a version, or with settings, that it did not begin for: otherwise these
// could bypass pauses, windows and canaries. But a host that is being changed is brought to the present settings.
func GoesOn(own v1alpha1.Disruption, request Request) bool {
	others := bringsSettings(request.Cause) && request.Configuration != "" && own.ConfigurationDigest != request.Configuration
	switch {
	case exempt(request.Cause):
		return true
	case others && !request.Begun:
		return false
	case own.Cause == request.Cause && own.Version == request.Version:
		return true
	}
	return !exempt(own.Cause) && request.Cause != v1alpha1.CauseUpgrade
}

// ConfigurationOf returns the configuration that the entry of a request has. What only restarts a host or gives it
// another key brings no settings, so that others need not wait for it, and it does not continue as what does.
func ConfigurationOf(request Request) string {
	if bringsSettings(request.Cause) || request.Cause == v1alpha1.CauseRepair {
		return request.Configuration
	}
	return ""
}

// unlessExempt is for rules that repairs and removals need not keep: they wait for nothing but other nodes that are
// being disturbed.
func unlessExempt(broken func(*scene) string) func(*scene) string {
	return func(s *scene) string {
		if s.exempt() {
			return ""
		}
		return broken(s)
	}
}

func unlessRemoved(broken func(*scene) string) func(*scene) string {
	return func(s *scene) string {
		if s.Cause == v1alpha1.CauseRemoval {
			return ""
		}
		return broken(s)
	}
}

func sameInstance(s *scene) string {
	if s.candidate.Instance != "" && s.candidate.UID != s.UID {
		return fmt.Sprintf("WindowsInstance %s was recreated. The operator requests a disruption slot for the new one.",
			s.Instance)
	}
	return ""
}

func policyValid(s *scene) string {
	if s.settings.Invalid == "" {
		return ""
	}
	return fmt.Sprintf("WindowsDisruptionPolicy %s is not valid, so nodes are disrupted only to repair or remove them. %s. Correct it.",
		v1alpha1.DisruptionPolicyName, s.settings.Invalid)
}

func notPaused(s *scene) string {
	const remedy = "Set it to false to resume."
	switch {
	case s.settings.Paused:
		return fmt.Sprintf("WindowsDisruptionPolicy %s is paused (spec.paused). %s", v1alpha1.DisruptionPolicyName, remedy)
	case s.settings.Pools[s.candidate.Pool].Paused:
		return fmt.Sprintf("Pool %s is paused (paused in spec.pools of WindowsDisruptionPolicy %s). %s", s.candidate.Pool,
			v1alpha1.DisruptionPolicyName, remedy)
	}
	return ""
}

func windowOpen(s *scene) string {
	open, next, window := s.settings.NextWindow(s.now)
	switch {
	case open:
		return ""
	case next.IsZero():
		return fmt.Sprintf("No maintenance window of WindowsDisruptionPolicy %s opens within years.",
			v1alpha1.DisruptionPolicyName)
	}
	s.askAgain(next)
	return fmt.Sprintf("No maintenance window is open. The next one opens at %s (%s).", moment(next), window.Text)
}

// noneFailed returns the rule of stopOnFailure.
func noneFailed(s *scene) string {
	if !s.settings.StopOnFailure {
		return ""
	}
	failed := s.failedNote(func(d standingDisruption) bool {
		return d.Version == s.Version && d.Cause != v1alpha1.CauseRemoval
	})
	for _, n := range s.pool.Nodes {
		if failed != "" {
			break
		}
		if n.Instance == s.Instance || n.Gone {
			continue
		}
		switch {
		case n.Failure != nil && n.Failure.Version == s.Version && !n.Failure.DrainTimedOut:
			failed = n.describe() + " has failed: " + failureText(*n.Failure)
		case n.Pool == s.candidate.Pool && n.overdue(s.settings, s.now):
			failed = fmt.Sprintf("%s has not been Ready since %s.", n.describe(), moment(n.Since))
		}
	}
	if failed == "" {
		return ""
	}
	return fmt.Sprintf("%s No further node is disrupted because stopOnFailure of WindowsDisruptionPolicy %s is set. Fix that node, or retry it with the annotation %s on its WindowsInstance.",
		failed, v1alpha1.DisruptionPolicyName, v1alpha1.AnnotationRetry)
}
