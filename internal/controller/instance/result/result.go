// Package result defines the result of a phase: why an instance does not progress, and how the reconcile continues. Its
// constructors have no effects. Those for failures of connections and hosts are in package hostjobs.
package result

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// LongestMessage limits messages of hosts and libraries, in bytes: the API server must accept them, and people read
// them.
const LongestMessage = 2048

// Untouched begins the next action of a host that is refused before it is configured. The agent has its own folder in
// C:\k, and so closes C:\k with its first look at the host.
const Untouched = `The host is not changed, except that only administrators can use C:\k until the host is removed. `

// HostRecheck is how often a refused host is asked again: it may have been changed.
const HostRecheck = 10 * time.Minute

// conflictDelay is how soon a write is tried again after a conflict with another writer.
const conflictDelay = 200 * time.Millisecond

// quietConflict is how long writes conflict before the status shows it.
const quietConflict = 2 * time.Second

// Result is the reason why an instance does not progress.
type Result struct {
	// Phase is the name of the phase that has met it.
	Phase string
	// Condition is the one that is not True because of it.
	Condition string
	Reason    string
	// Message says what is wrong in words for an administrator; Next says what happens next or what to do.
	Message string
	Next    string
	Outcome Outcome
	// KeepsTurn is true when the instance keeps its turn at the gate: the result belongs to the work on a node that has
	// it, or passes by itself.
	KeepsTurn bool
	// AtGate is true when the gate has refused: a change of the policy, or of what is being disturbed, may end that.
	AtGate bool
	// SSHKeyRejected is true when the host did not accept the operator's key.
	SSHKeyRejected bool
	// Replaces is true when the Machine is to be replaced for this version of the operator.
	Replaces bool
	// After is when to look again at the latest; zero waits for an event (or the retry delay).
	After time.Duration
	// Step is the step of a job that the status shows; empty for none.
	Step string
	// Quiet is how long the result lasts before the status shows it.
	Quiet time.Duration
}

// WriteFirst returns the result of a phase whose decision must be in the status before the phases go on.
func WriteFirst(condition string) *Result {
	return &Result{Condition: condition, Reason: v1alpha1.ReasonInProgress, Outcome: Again, KeepsTurn: true, Quiet: time.Second,
		Message: "The operator works on the host.", Next: "The operator continues immediately."}
}

// Leaves reports whether the result leaves a condition as it is. A nil result does not.
func (o *Result) Leaves(condition string) bool {
	return o != nil && o.Outcome == LeftAlone && o.Condition != condition
}

// Status is the status of the condition that the result keeps from being True.
func (o *Result) Status() metav1.ConditionStatus {
	if o.Outcome == LeftAlone {
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}

// quietRead is how long a list is read before the status shows it.
const quietRead = 30 * time.Second

// API returns the result of a failed request to the API server.
func API(condition, what string, err error) *Result {
	if errors.Is(err, queue.ErrNotRead) {
		return &Result{
			Condition: condition, Reason: v1alpha1.ReasonInProgress, Outcome: Working, KeepsTurn: true, Quiet: quietRead,
			Message: "The operator waits for a list from the API server that it needs to " + what + ".",
			Next:    "The operator continues when the API server has answered.",
		}
	}
	if apierrors.IsConflict(err) {
		return &Result{
			Condition: condition, Reason: v1alpha1.ReasonWaiting, Outcome: Wait, KeepsTurn: true, After: conflictDelay, Quiet: quietConflict,
			Message: "Another client changed the same object at the same time.", Next: "The operator retries at once.",
		}
	}
	return &Result{
		Condition: condition, Reason: v1alpha1.ReasonAPIRequestFailed, KeepsTurn: true,
		Message: "Could not " + what + ": " + err.Error(),
		Next:    "If the API server is busy, no action is needed. If the request was forbidden, grant the permission that the message names.",
	}
}

// Payload returns the result of a payload that the operator cannot read.
func Payload(err error) *Result {
	return &Result{
		Condition: v1alpha1.ConditionInstalled, Reason: v1alpha1.ReasonPayloadUnavailable,
		Message: "The operator cannot read its payload: " + err.Error(),
		Next:    "Check the operator's image, and the free disk space of its pod.",
	}
}

// Spec returns the result of a NodeSpec that cannot be made: a program is missing, or the cluster lacks a setting
// that it needs.
func Spec(err error) *Result {
	o := &Result{
		Condition: v1alpha1.ConditionInstalled, Reason: v1alpha1.ReasonClusterConfigurationInvalid,
		Message: err.Error(),
		Next:    "The operator cannot determine the host's configuration until this is corrected.",
	}
	var lacks *nodespec.MissingProgramsError
	if errors.As(err, &lacks) {
		o.Reason = v1alpha1.ReasonPayloadUnavailable
		o.Next = "Install an image of the operator with a complete payload. Until then, the host is not changed."
	}
	return o
}

// APIServerUnreachable returns the result on the way from a host to the API server; nil when there is none, or nobody has
// looked.
func APIServerUnreachable(facts *plan.APIServerFacts) *Result {
	if facts == nil || facts.Error == "" {
		return nil
	}
	next := Untouched + "Allow the host to connect to that TCP port, in firewalls and routes."
	if len(facts.Resolved) == 0 {
		next = Untouched +
			"Add the name to the host's DNS servers or to its hosts file. On vSphere the cluster's domain must be in DNS."
	}
	return &Result{
		Condition: v1alpha1.ConditionPrepared, Reason: v1alpha1.ReasonAPIServerUnreachable,
		Message: "The host cannot reach the API server at " + facts.URL + ", and so no kubelet on it could: " + facts.Error,
		Next:    next,
	}
}
