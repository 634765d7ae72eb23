// Package obstacle defines the reasons why an instance does not progress: a phase returns an obstacle when the next
// phase must not run. Its constructors make one of an error of the API server, of a connection (package remote has the
// words for these) or of a host (package agent/state), and have no effects.
package obstacle

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/text"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// LongestMessage limits messages of hosts and libraries, in bytes: the API server must accept them, and people read
// them.
const LongestMessage = 2048

// Untouched begins the next action of a host that is refused before it is configured. The agent has its own folder in
// C:\k, and so closes C:\k with its first look at the host.
const Untouched = `The host stays as it is, except that only administrators can use C:\k until the host is given back. `

// HostRecheck is how often a refused host is asked again: it may have been changed.
const HostRecheck = 10 * time.Minute

// conflictDelay is how soon a write is tried again after a conflict with another writer.
const conflictDelay = 200 * time.Millisecond

// Obstacle is the reason why an instance does not progress.
type Obstacle struct {
	// Phase is the name of the phase that has met it.
	Phase string
	// Condition is the one that is not True because of it.
	Condition string
	Reason    string
	// Message says what is wrong in words for an administrator; Next says what happens next or what to do.
	Message string
	Next    string
	Outcome Outcome
	// KeepsTurn is true when the instance keeps its turn at the gate: the obstacle belongs to the work on a node that has
	// it, or passes by itself.
	KeepsTurn bool
	// AtGate is true when the gate has refused: a change of the policy, or of what is being disturbed, may end that.
	AtGate bool
	// KeyRefused is true when the host did not accept the operator's key.
	KeyRefused bool
	// Replaces is true when the Machine is to be replaced for this version of the operator.
	Replaces bool
	// After is when to look again at the latest; zero waits for an event (or the retry delay).
	After time.Duration
}

// Leaves reports whether the obstacle leaves a condition as it is. A nil obstacle does not.
func (o *Obstacle) Leaves(condition string) bool {
	return o != nil && o.Outcome == LeftAlone && o.Condition != condition
}

// Status is the status of the condition that the obstacle keeps from being True.
func (o *Obstacle) Status() metav1.ConditionStatus {
	if o.Outcome == LeftAlone {
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}

// API returns the obstacle of a failed request to the API server.
func API(condition, what string, err error) *Obstacle {
	if apierrors.IsConflict(err) {
		return &Obstacle{
			Condition: condition, Reason: v1alpha1.ReasonWaiting, Outcome: Wait, KeepsTurn: true, After: conflictDelay,
			Message: "Somebody else has changed the same object at the same time.", Next: "The operator tries again at once.",
		}
	}
	return &Obstacle{
		Condition: condition, Reason: v1alpha1.ReasonAPIRequestFailed, KeepsTurn: true,
		Message: "Could not " + what + ": " + err.Error(),
		Next:    "If the API server is busy, no action is needed. If it refused the request, the message names the missing permission.",
	}
}

// Host returns the obstacle of a verb that failed on the host, or of a failed connection to it.
func Host(condition string, err error) *Obstacle {
	o := &Obstacle{
		Condition: condition, Reason: v1alpha1.ReasonStepFailed, Message: text.Shortened(err.Error(), LongestMessage),
		Next: "The operator tries again; completed steps are not repeated.",
	}
	var failure *verb.Failure
	var failed *remote.Error
	switch {
	case errors.As(err, &failure):
		o.Reason, o.Outcome = string(knownReason(failure.Reason)), ChangeFailed
		switch failure.Reason {
		case verb.ReasonAgentBusy: // a verb of an earlier connection, or of another operator, is at work: the host is not as it was
			o.Outcome, o.KeepsTurn = TryAgain, true
		case verb.ReasonSpecUnknown:
			o.Outcome = TryAgain
		}
	case errors.As(err, &failed):
		o.failedBy(err, failed)
	}
	return o
}

// knownReason returns the reason of a failure on a host as a reason of a condition: always one of the agent's, whatever
// the host has sent.
func knownReason(reason verb.Reason) verb.Reason {
	switch reason {
	case verb.ReasonAgentBusy, verb.ReasonInvalidInput, verb.ReasonStepFailed, verb.ReasonDiskFull,
		verb.ReasonServiceFailed, verb.ReasonPayloadDamaged,
		verb.ReasonSpecUnknown, verb.ReasonAgentError:
		return reason
	}
	return verb.ReasonAgentError
}

// Connect returns the obstacle of a failed connection to a host.
func Connect(err error) *Obstacle {
	o := &Obstacle{Condition: v1alpha1.ConditionReachable, Reason: string(remote.ReasonUnreachable),
		Message: err.Error()}
	var failed *remote.Error
	if errors.As(err, &failed) {
		o.failedBy(err, failed)
	}
	return o
}

// failedBy fills in why a connection or a run of the agent failed.
func (o *Obstacle) failedBy(err error, failed *remote.Error) {
	o.Reason, o.KeyRefused = string(failed.Reason), failed.Reason == remote.ReasonAuthenticationFailed
	if failed.Reason == remote.ReasonAgentDidNotStart {
		o.Outcome = ChangeFailed
	}
	// The error says both in one sentence; the status has a place for each.
	o.Message, o.Next = strings.TrimSuffix(err.Error(), "; "+failed.Next), ""
	if failed.Next != "" {
		o.Next = strings.ToUpper(failed.Next[:1]) + failed.Next[1:] + "."
	}
}

// Payload returns the obstacle of a payload that the operator cannot read.
func Payload(err error) *Obstacle {
	return &Obstacle{
		Condition: v1alpha1.ConditionInstalled, Reason: v1alpha1.ReasonPayloadUnavailable,
		Message: "The operator cannot read its payload: " + err.Error(),
		Next:    "The operator's image is damaged or its disk is full.",
	}
}

// Spec returns the obstacle of a NodeSpec that cannot be made: a program is missing, or the cluster lacks a setting
// that it needs.
func Spec(err error) *Obstacle {
	o := &Obstacle{
		Condition: v1alpha1.ConditionInstalled, Reason: v1alpha1.ReasonClusterConfigurationInvalid,
		Message: err.Error(),
		Next:    "The operator cannot determine the host's configuration until this is corrected.",
	}
	var lacks *nodespec.MissingProgramsError
	if errors.As(err, &lacks) {
		o.Reason = v1alpha1.ReasonPayloadUnavailable
		o.Next = "The operator needs an image whose payload is whole. The host is left as it is until then."
	}
	return o
}

// APIServerUnreachable returns the obstacle on the way from a host to the API server; nil when there is none, or nobody has
// looked.
func APIServerUnreachable(facts *plan.APIServerFacts) *Obstacle {
	if facts == nil || facts.Error == "" {
		return nil
	}
	next := Untouched + "Open the way from the host to that TCP port, in firewalls and routes."
	if len(facts.Resolved) == 0 {
		next = Untouched +
			"Make the name resolve on the host: in the DNS servers that it asks, or in its hosts file. On vSphere the cluster's domain must be in DNS."
	}
	return &Obstacle{
		Condition: v1alpha1.ConditionPrepared, Reason: v1alpha1.ReasonAPIServerUnreachable,
		Message: "The host cannot reach the API server at " + facts.URL + ", and so no kubelet on it could: " + facts.Error,
		Next:    next,
	}
}
