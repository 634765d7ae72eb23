package execute

import (
	"context"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// progress reports the progress of the current step.
func (e *Executor) progress(format string, arguments ...any) {
	e.Answer.Detail(e.current, fmt.Sprintf(format, arguments...))
}

// advise reports that the step was tried but not completed, without failing the step.
func (e *Executor) advise(text string) {
	e.current.State, e.current.Detail = verb.StepProgress, text
	e.Answer.Step(e.current)
}

// TakeAdvice returns and clears the advice of the last step; empty if the step was completed.
func (e *Executor) TakeAdvice() string {
	advice := e.current.Detail
	e.current.Detail = ""
	return advice
}

// within runs a long action, with the limit if there is one, and reports progress periodically.
func (e *Executor) within(
	ctx context.Context, limit time.Duration, what string, action func(context.Context) error,
) error {
	return timeouts.Work{Limit: limit, What: what, Tell: e.progress}.Run(ctx, e.Clock, action)
}
