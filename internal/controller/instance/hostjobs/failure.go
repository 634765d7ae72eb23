package hostjobs

import (
	"errors"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// HandleFailure drops facts of a host that may be outdated after a failure, and returns the result.
func (h *Host) HandleFailure(condition string, err error) *result.Result {
	var failure *agentapi.Failure
	var unreadable payloadError
	if errors.As(err, &unreadable) {
		return result.FromPayloadError(unreadable.error)
	}
	if errors.As(err, &failure) {
		// The agent may have changed the host before the failure, so the facts may be outdated.
		h.AppliedDigest, h.Facts, h.Planned, h.IssuedCertificates, h.Remains = "", nil, nil, nil, nil
	} else {
		h.Close()
	}
	if errors.Is(err, ErrTimedOut) {
		return TimeoutResult(condition)
	}
	return ResultFromError(condition, err)
}

// TimeoutResult returns the result of a job that exceeded its limit.
func TimeoutResult(condition string) *result.Result {
	return &result.Result{
		Condition: condition, Reason: v1alpha1.ReasonJobTimedOut,
		Message:    "The operator's work on the host exceeded its time limit and was stopped.",
		NextAction: "The operator retries; completed steps are not repeated. Check the host's load, its disk, and its network.",
	}
}

// ResultFromError returns the result of an agent command that failed on the host, or of a failed connection to the
// host.
func ResultFromError(condition string, err error) *result.Result {
	o := &result.Result{
		Condition: condition, Reason: v1alpha1.ReasonStepFailed, Message: sanitize.Shorten(err.Error(), result.MaxMessageLength),
		NextAction: "The operator retries; completed steps are not repeated.",
	}
	var failure *agentapi.Failure
	var broken *remote.Error
	switch {
	case errors.As(err, &failure):
		o.Reason, o.Outcome = string(knownReason(failure.Reason)), result.ChangeFailed
		switch failure.Reason {
		case agentapi.ReasonAgentBusy: // a command of an earlier connection or of another operator is running and may have changed the host
			o.Outcome, o.HoldsSlot = result.Retry, true
		case agentapi.ReasonSpecNotFound:
			o.Outcome = result.Retry
		}
	case errors.As(err, &broken):
		setConnectionFailure(o, err, broken)
	}
	return o
}

// knownReason maps the reason of a failure on a host to a condition reason. Any reason not defined by the agent
// maps to ReasonAgentError.
func knownReason(reason agentapi.Reason) agentapi.Reason {
	switch reason {
	case agentapi.ReasonAgentBusy, agentapi.ReasonInvalidInput, agentapi.ReasonStepFailed, agentapi.ReasonDiskFull,
		agentapi.ReasonServiceFailed, agentapi.ReasonPayloadCorrupted,
		agentapi.ReasonSpecNotFound, agentapi.ReasonAgentError:
		return reason
	}
	return agentapi.ReasonAgentError
}

// ResultFromConnectError returns the result of a failed connection to a host.
func ResultFromConnectError(err error) *result.Result {
	o := &result.Result{Condition: v1alpha1.ConditionReachable, Reason: string(remote.ReasonUnreachable), Message: err.Error()}
	var failed *remote.Error
	if errors.As(err, &failed) {
		setConnectionFailure(o, err, failed)
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

// IsKeyRejected reports whether a connection has failed because the host does not accept the operator's key.
func IsKeyRejected(err error) bool { return remote.ReasonOf(err) == remote.ReasonAuthenticationFailed }

// setConnectionFailure sets the reason, the message and the next step for a failed connection or a failed agent run.
func setConnectionFailure(o *result.Result, err error, failed *remote.Error) {
	o.Reason, o.SSHKeyRejected = string(failed.Reason), failed.Reason == remote.ReasonAuthenticationFailed
	if failed.Reason == remote.ReasonAgentStartFailed {
		o.Outcome = result.ChangeFailed
	}
	// The error contains the message and the next step in one sentence. The status has a field for each.
	o.Message, o.NextAction = strings.TrimSuffix(err.Error(), "; "+failed.Next), ""
	if failed.Next != "" {
		o.NextAction = strings.ToUpper(failed.Next[:1]) + failed.Next[1:] + "."
	}
}
