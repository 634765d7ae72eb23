package execute

import (
	"context"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
)

// reportProgress reports the progress of the current step.
func (e *Executor) reportProgress(format string, arguments ...any) {
	e.Answer.Detail(e.current, fmt.Sprintf(format, arguments...))
}

// recordWarning reports that the step was tried but not completed, without failing the step.
func (e *Executor) recordWarning(text string) {
	e.current.State, e.current.Detail = agentapi.StepProgress, text
	e.Answer.Step(e.current)
}

// TakeWarning returns and clears the advice of the last step; empty if the step was completed.
func (e *Executor) TakeWarning() string {
	advice := e.current.Detail
	e.current.Detail = ""
	return advice
}

// withProgress runs a long action, with the limit if there is one, and reports progress periodically.
func (e *Executor) withProgress(
	ctx context.Context, limit time.Duration, what string, action func(context.Context) error,
) error {
	return timeouts.Operation{Timeout: limit, What: what, Progress: e.reportProgress}.Run(ctx, e.Clock, action)
}
