package hostjobs

import (
	"errors"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/text"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Failed drops facts of a host that may be outdated after a failure, and returns the result.
func (h *Host) Failed(condition string, err error) *result.Result {
	var failure *verb.Failure
	var unreadable payloadError
	if errors.As(err, &unreadable) {
		return result.Payload(unreadable.error)
	}
	if errors.As(err, &failure) {
		// The agent may have changed the host before the failure, so the facts may be outdated.
		h.Applied, h.Facts, h.Planned, h.Issued, h.Remains = "", nil, nil, nil, nil
	} else {
		h.Close()
	}
	if errors.Is(err, ErrTimedOut) {
		return TimedOut(condition)
	}
	return FailureOf(condition, err)
}

// TimedOut returns the result of a job that exceeded its limit.
func TimedOut(condition string) *result.Result {
	return &result.Result{
		Condition: condition, Reason: v1alpha1.ReasonJobTimedOut,
		Message: "The operator worked on the host for too long without finishing, and stopped.",
		Next:    "The operator retries; completed steps are not repeated. Check the host's load, its disk, and its network.",
	}
}

// FailureOf returns the result of an agent command that failed on the host, or of a failed connection to the
// host.
func FailureOf(condition string, err error) *result.Result {
	o := &result.Result{
		Condition: condition, Reason: v1alpha1.ReasonStepFailed, Message: text.Shortened(err.Error(), result.LongestMessage),
		Next: "The operator retries; completed steps are not repeated.",
	}
	var failure *verb.Failure
	var broken *remote.Error
	switch {
	case errors.As(err, &failure):
		o.Reason, o.Outcome = string(knownReason(failure.Reason)), result.ChangeFailed
		switch failure.Reason {
		case verb.ReasonAgentBusy: // a command of an earlier connection or of another operator is running and may have changed the host
			o.Outcome, o.KeepsTurn = result.TryAgain, true
		case verb.ReasonSpecNotFound:
			o.Outcome = result.TryAgain
		}
	case errors.As(err, &broken):
		explain(o, err, broken)
	}
	return o
}

// knownReason maps the reason of a failure on a host to a condition reason. Any reason not defined by the agent
// maps to ReasonAgentError.
func knownReason(reason verb.Reason) verb.Reason {
	switch reason {
	case verb.ReasonAgentBusy, verb.ReasonInvalidInput, verb.ReasonStepFailed, verb.ReasonDiskFull,
		verb.ReasonServiceFailed, verb.ReasonPayloadCorrupted,
		verb.ReasonSpecNotFound, verb.ReasonAgentError:
		return reason
	}
	return verb.ReasonAgentError
}

// NotConnected returns the result of a failed connection to a host.
func NotConnected(err error) *result.Result {
	o := &result.Result{Condition: v1alpha1.ConditionReachable, Reason: string(remote.ReasonUnreachable), Message: err.Error()}
	var failed *remote.Error
	if errors.As(err, &failed) {
		explain(o, err, failed)
	}
	return o
}

// IsUnreachable reports whether a connection has failed because the host does not respond.
func IsUnreachable(err error) bool {
	switch remote.ReasonOf(err) {
	case remote.ReasonUnreachable, remote.ReasonConnectionTimedOut, remote.ReasonConnectionLost:
		return true
	}
	return false
}

// IsKeyRefused reports whether a connection has failed because the host does not accept the operator's key.
func IsKeyRefused(err error) bool { return remote.ReasonOf(err) == remote.ReasonAuthenticationFailed }

// explain sets the reason, the message and the next step for a failed connection or a failed agent run.
func explain(o *result.Result, err error, failed *remote.Error) {
	o.Reason, o.SSHKeyRejected = string(failed.Reason), failed.Reason == remote.ReasonAuthenticationFailed
	if failed.Reason == remote.ReasonAgentStartFailed {
		o.Outcome = result.ChangeFailed
	}
	// The error contains the message and the next step in one sentence. The status has a field for each.
	o.Message, o.Next = strings.TrimSuffix(err.Error(), "; "+failed.Next), ""
	if failed.Next != "" {
		o.Next = strings.ToUpper(failed.Next[:1]) + failed.Next[1:] + "."
	}
}
