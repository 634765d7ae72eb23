// Package result defines the result of a phase: why an instance does not progress, and how the reconcile
// continues. The constructors have no side effects. Constructors for failures of connections and hosts are in
// package hostjobs.
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

// MaxMessageLength is the maximum size of messages from hosts and libraries, in bytes. The messages must be
// readable and accepted by the API server.
const MaxMessageLength = 2048

// HostUnchanged begins the next action for a host that is refused before its configuration. The agent directory is in
// C:\k, so the first inspection of the host restricts C:\k.
const HostUnchanged = `The host is not changed, except that only administrators can use C:\k until the host is removed. `

// HostRecheckInterval is the interval between checks of a refused host, which an administrator may have changed.
const HostRecheckInterval = 10 * time.Minute

// conflictDelay is the delay before a retry after a conflict with another writer.
const conflictDelay = 200 * time.Millisecond

// conflictStatusDelay is the time before the status reports conflicting writes.
const conflictStatusDelay = 2 * time.Second

// Result is the reason why an instance does not progress.
type Result struct {
	// Phase is the name of the phase that returned the result.
	Phase string
	// Condition is the type of the condition that is not True because of the result.
	Condition string
	Reason    string
	// Message describes the problem for an administrator. NextAction describes the next action of the operator or the
	// administrator.
	Message    string
	NextAction string
	Outcome    Outcome
	// HoldsSlot is true if the instance keeps its disruption slot: the result belongs to the work on a node with
	// a slot, or is temporary.
	HoldsSlot bool
	// RefusedByGate is true if the disruption policy refused the work. A change of the policy or of the current
	// disruptions may allow the work.
	RefusedByGate bool
	// SSHKeyRejected is true if the host did not accept the operator's key.
	SSHKeyRejected bool
	// NeedsReplacement is true if the Machine must be replaced for this version of the operator.
	NeedsReplacement bool
	// RequeueAfter is the maximum delay before the next reconcile. If zero, the operator waits for an event or the retry
	// delay.
	RequeueAfter time.Duration
	// Step is the step of a job for the status; empty for none.
	Step string
	// StatusDelay is the minimum duration of the result before the status shows it.
	StatusDelay time.Duration
}

// WriteFirst returns the result of a phase if its decision must be written to the status before the phases
// continue.
func WriteFirst(condition string) *Result {
	return &Result{Condition: condition, Reason: v1alpha1.ReasonInProgress, Outcome: Continue, HoldsSlot: true, StatusDelay: time.Second,
		Message: "The operator is working on the host.", NextAction: "The operator continues immediately."}
}

// KeepsCondition reports whether the result leaves a condition unchanged. A nil result does not.
func (o *Result) KeepsCondition(condition string) bool {
	return o != nil && o.Outcome == Unmanaged && o.Condition != condition
}

// Status returns the status of the condition that is not True because of the result.
func (o *Result) Status() metav1.ConditionStatus {
	if o.Outcome == Unmanaged {
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}

// listStatusDelay is the time before the status reports the read of a list.
const listStatusDelay = 30 * time.Second

// FromAPIError returns the result of a failed request to the API server.
func FromAPIError(condition, what string, err error) *Result {
	if errors.Is(err, queue.ErrNotRead) {
		return &Result{
			Condition: condition, Reason: v1alpha1.ReasonInProgress, Outcome: Working, HoldsSlot: true, StatusDelay: listStatusDelay,
			Message:    "The operator waits for a list from the API server that is needed to " + what + ".",
			NextAction: "The operator continues when the API server responds.",
		}
	}
	if apierrors.IsConflict(err) {
		return &Result{
			Condition: condition, Reason: v1alpha1.ReasonWaiting, Outcome: Wait, HoldsSlot: true, RequeueAfter: conflictDelay, StatusDelay: conflictStatusDelay,
			Message: "Another client changed the same object at the same time.", NextAction: "The operator retries immediately.",
		}
	}
	return &Result{
		Condition: condition, Reason: v1alpha1.ReasonAPIRequestFailed, HoldsSlot: true,
		Message:    "Could not " + what + ": " + err.Error(),
		NextAction: "If the API server is busy, no action is needed. If the request was forbidden, grant the permission that the message names.",
	}
}

// FromPayloadError returns the result for a payload that the operator cannot read.
func FromPayloadError(err error) *Result {
	return &Result{
		Condition: v1alpha1.ConditionInstalled, Reason: v1alpha1.ReasonPayloadUnavailable,
		Message:    "The operator cannot read its payload: " + err.Error(),
		NextAction: "Check the operator's image, and the free disk space of its pod.",
	}
}

// FromSpecError returns the result for a NodeSpec that cannot be created, because a program or a required cluster
// setting is missing.
func FromSpecError(err error) *Result {
	o := &Result{
		Condition: v1alpha1.ConditionInstalled, Reason: v1alpha1.ReasonClusterConfigurationInvalid,
		Message:    err.Error(),
		NextAction: "Correct the problem that the message names. Until then, the host is not configured.",
	}
	var lacks *nodespec.MissingProgramsError
	if errors.As(err, &lacks) {
		o.Reason = v1alpha1.ReasonPayloadUnavailable
		o.NextAction = "Install an image of the operator with a complete payload. Until then, the host is not changed."
	}
	return o
}

// APIServerUnreachable returns the result for a host that cannot connect to the API server; nil if the connection
// succeeds or was not checked.
func APIServerUnreachable(facts *plan.APIServerFacts) *Result {
	if facts == nil || facts.Error == "" {
		return nil
	}
	next := HostUnchanged + "Allow the host to connect to that TCP port, in firewalls and routes."
	if len(facts.Resolved) == 0 {
		next = HostUnchanged +
			"Add the name to the host's DNS servers or to its hosts file. On vSphere the cluster's domain must be in DNS."
	}
	return &Result{
		Condition: v1alpha1.ConditionPrepared, Reason: v1alpha1.ReasonAPIServerUnreachable,
		Message:    "The host cannot reach the API server at " + facts.URL + "; a kubelet on the host could not register: " + facts.Error,
		NextAction: next,
	}
}
