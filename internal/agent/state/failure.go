package state

import (
	"context"
	"errors"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// FailureOf puts an error into the operator's terms. The step is empty for what is not about one; a failure that names
// one already keeps it.
func FailureOf(step string, err error) *verb.Failure {
	var failure *verb.Failure
	if errors.As(err, &failure) {
		known := *failure
		if known.Step == "" {
			known.Step = step
		}
		return &known
	}
	f := &verb.Failure{Reason: verb.ReasonStepFailed, Step: step, Message: err.Error()}
	switch {
	case errors.Is(err, host.ErrDiskFull):
		f.Reason = verb.ReasonDiskFull
		f.Message += "; free disk space on the system volume; the agent then resumes"
	case errors.Is(err, payload.ErrDamaged):
		f.Reason = verb.ReasonPayloadCorrupted
		f.Message += "; it is sent again"
	case errors.Is(err, host.ErrInUse):
		f.Message += "; stop the program that uses it; the agent then resumes"
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		f.Message = "the agent command was interrupted; the next run resumes: " + err.Error()
	case step == "":
		f.Reason = verb.ReasonAgentError
	}
	return f
}

// InvalidInput returns the failure of a verb that was called with what it cannot use.
func InvalidInput(message string) error {
	return &verb.Failure{Reason: verb.ReasonInvalidInput, Message: message}
}
