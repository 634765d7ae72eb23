package state

import (
	"context"
	"errors"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// FailureOf converts an error to a failure for the operator. Step is empty for errors outside of steps. A step
// already named by a failure is preserved.
func FailureOf(step string, err error) *agentapi.Failure {
	var failure *agentapi.Failure
	if errors.As(err, &failure) {
		known := *failure
		if known.Step == "" {
			known.Step = step
		}
		return &known
	}
	f := &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Step: step, Message: err.Error()}
	switch {
	case errors.Is(err, host.ErrDiskFull):
		f.Reason = agentapi.ReasonDiskFull
		f.Message += "; free disk space on the system volume; the agent then resumes"
	case errors.Is(err, payload.ErrDamaged):
		f.Reason = agentapi.ReasonPayloadCorrupted
		f.Message += "; the operator sends the payload again"
	case errors.Is(err, host.ErrInUse):
		f.Message += "; stop the program that uses the file or object; the agent then resumes"
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		f.Message = "the agent command was interrupted; the next run resumes: " + err.Error()
	case step == "":
		f.Reason = agentapi.ReasonAgentError
	}
	return f
}

// InvalidInput returns the failure of an agent command that was called with unusable input.
func InvalidInput(message string) error {
	return &agentapi.Failure{Reason: agentapi.ReasonInvalidInput, Message: message}
}
