// Package disruption parses the spec of a WindowsDisruptionPolicy, decides whether a node may be disrupted now, and
// judges the disruptions in progress. The inputs are all nodes, and the policy's settings and status. The package
// writes nothing and disrupts nothing: the gate does that.
package disruption

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// Request is a request for the disruption of one node.
type Request struct {
	Instance string
	UID      types.UID
	Cause    v1alpha1.DisruptionCause
	// Version is the desired operator version of the node.
	Version string
	// Configuration identifies the desired settings of the cluster and the operator: see nodespec.Configuration. If
	// it is empty, the settings are not known and only the version is checked.
	Configuration string
	// HostChanged is true if the current disruption has already changed the host.
	HostChanged bool
	// Replaces is true if the Machine of the node will be deleted.
	Replaces bool
}

// Decision reports whether a node may be disrupted now.
type Decision struct {
	policy.Decision
	// After is the time until the next decision, if the decision can change with time alone. Zero means that it
	// changes only with another event.
	After time.Duration
}

// IsForAllNodes reports whether a refusal applies to every other node too.
func (d Decision) IsForAllNodes() bool {
	return d.Reason == v1alpha1.ReasonDisruptionPolicyInvalid || d.Reason == v1alpha1.ReasonOutsideMaintenanceWindow
}

// IsIndependentOfNodes reports whether a refusal is independent of the progress of other nodes: it ends with time, or
// when an administrator changes the policy or fixes a failed node.
func (d Decision) IsIndependentOfNodes() bool {
	switch d.Reason {
	case v1alpha1.ReasonDisruptionsPaused, v1alpha1.ReasonDisruptionPolicyInvalid, v1alpha1.ReasonOutsideMaintenanceWindow,
		v1alpha1.ReasonCanaryFailed, v1alpha1.ReasonStoppedOnFailure:
		return true
	}
	return false
}

// Allow decides whether one node may be disrupted now. A node with an entry that still counts continues under any
// policy, within the limits of IsContinuation. Any other node is decided on again. The same applies to a node with a
// failed entry, which then starts again with a new Since.
func Allow(pool NodePool, request Request, settings Settings, now time.Time) Decision {
	s := newDecisionInput(pool, request, settings, now)
	if s.ownEntry != nil && IsContinuation(s.ownEntry.Disruption, request) {
		return Decision{Decision: policy.Decision{Allowed: true, Message: s.ownEntry.describeDisruption() + " already."}}
	}
	// The order of the checks is the priority of the reasons: waits for an administrator, waits for a time, waits for
	// other nodes.
	decision := policy.Decide(s, "The disruption policy allows the disruption of this node now.", []policy.Check[*decisionInput]{
		{Name: "InstanceRecreated", Reason: v1alpha1.ReasonDisruptionInProgress, Violation: instanceRecreated},
		{Name: "PolicyInvalid", Reason: v1alpha1.ReasonDisruptionPolicyInvalid, Violation: unlessExempt(policyInvalid)},
		{Name: "PolicyPaused", Reason: v1alpha1.ReasonDisruptionsPaused, Violation: unlessExempt(policyPaused)},
		{Name: "NodeFailed", Reason: v1alpha1.ReasonStoppedOnFailure, Violation: unlessExempt(nodeFailed)},
		{Name: "CanaryFailed", Reason: v1alpha1.ReasonCanaryFailed, Violation: unlessExempt(canaryFailed)},
		{Name: "WindowClosed", Reason: v1alpha1.ReasonOutsideMaintenanceWindow, Violation: unlessExempt(windowClosed)},
		{Name: "CanarySoaking", Reason: v1alpha1.ReasonCanarySoaking, Violation: unlessExempt(canarySoaking)},
		{Name: "LastAvailableMachine", Reason: v1alpha1.ReasonLastAvailableMachine, Violation: unlessRemoved(lastAvailableMachine)},
		{Name: "MaxUnavailableReached", Reason: v1alpha1.ReasonMaxUnavailableReached, Violation: maxUnavailableReached},
		{Name: "PoolMaxUnavailableReached", Reason: v1alpha1.ReasonMaxUnavailableReached, Violation: poolMaxUnavailableReached},
	})
	if decision.Allowed {
		return Decision{Decision: decision}
	}
	return Decision{Decision: decision, After: s.retryDelay()}
}

// IsContinuation reports whether a request continues the counting entry of its instance. A repair or a removal
// continues only as such. An entry never becomes an upgrade to a new version, or a change to other settings:
// otherwise these could bypass pauses, windows and canaries. A host that is being changed receives the current
// settings nevertheless.
func IsContinuation(own v1alpha1.Disruption, request Request) bool {
	others := isSettingsCause(request.Cause) && request.Configuration != "" && own.ConfigurationDigest != request.Configuration
	switch {
	case isExemptCause(request.Cause):
		return true
	case others && !request.HostChanged:
		return false
	case own.Cause == request.Cause && own.Version == request.Version:
		return true
	}
	return !isExemptCause(own.Cause) && request.Cause != v1alpha1.CauseUpgrade
}

// ConfigurationOf returns the configuration recorded in the entry of a request. Reboots and key changes apply no
// settings. Without a configuration, such an entry neither blocks other nodes nor continues as a change of settings.
func ConfigurationOf(request Request) string {
	if isSettingsCause(request.Cause) || request.Cause == v1alpha1.CauseRepair {
		return request.Configuration
	}
	return ""
}

// unlessExempt skips a check for repairs and removals, which wait only for other disrupted nodes.
func unlessExempt(broken func(*decisionInput) string) func(*decisionInput) string {
	return func(s *decisionInput) string {
		if s.isExempt() {
			return ""
		}
		return broken(s)
	}
}

func unlessRemoved(broken func(*decisionInput) string) func(*decisionInput) string {
	return func(s *decisionInput) string {
		if s.Cause == v1alpha1.CauseRemoval {
			return ""
		}
		return broken(s)
	}
}

func instanceRecreated(s *decisionInput) string {
	if s.candidate.Instance != "" && s.candidate.UID != s.UID {
		return fmt.Sprintf("WindowsInstance %s was recreated. The operator requests a disruption slot for the new one.",
			s.Instance)
	}
	return ""
}

func policyInvalid(s *decisionInput) string {
	if s.settings.Invalid == "" {
		return ""
	}
	return fmt.Sprintf("WindowsDisruptionPolicy %s is not valid, so nodes are disrupted only to repair or remove them. %s. Correct it.",
		v1alpha1.DisruptionPolicyName, s.settings.Invalid)
}

func policyPaused(s *decisionInput) string {
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

func windowClosed(s *decisionInput) string {
	open, next, window := s.settings.NextWindow(s.now)
	switch {
	case open:
		return ""
	case next.IsZero():
		return fmt.Sprintf("No maintenance window of WindowsDisruptionPolicy %s opens within the next years.",
			v1alpha1.DisruptionPolicyName)
	}
	s.retryAt(next)
	return fmt.Sprintf("No maintenance window is open. The next one opens at %s (%s).", formatTime(next), window.Text)
}

// nodeFailed implements stopOnFailure.
func nodeFailed(s *decisionInput) string {
	if !s.settings.StopOnFailure {
		return ""
	}
	failed := s.describeFailedEntry(func(d timedDisruption) bool {
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
			failed = n.describeWithPool() + " has failed: " + failureText(*n.Failure)
		case n.Pool == s.candidate.Pool && n.isOverdue(s.settings, s.now):
			failed = fmt.Sprintf("%s has not been Ready since %s.", n.describeWithPool(), formatTime(n.Since))
		}
	}
	if failed == "" {
		return ""
	}
	return fmt.Sprintf("%s No further node is disrupted because stopOnFailure of WindowsDisruptionPolicy %s is set. Fix that node, or retry it with the annotation %s on its WindowsInstance.",
		failed, v1alpha1.DisruptionPolicyName, v1alpha1.AnnotationRetry)
}
