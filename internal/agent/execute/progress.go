package execute

import (
	"context"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// progress tells how far the present step is.
func (e *Executor) progress(format string, arguments ...any) {
	e.Answer.Detail(e.current, fmt.Sprintf(format, arguments...))
}

// advise says with the step that it was tried and not done, which keeps nobody from going on.
func (e *Executor) advise(text string) {
	e.current.State, e.current.Detail = verb.StepProgress, text
	e.Answer.Step(e.current)
}

// TakeAdvice returns what the last step advises of, once; empty when the step was done.
func (e *Executor) TakeAdvice() string {
	advice := e.current.Detail
	e.current.Detail = ""
	return advice
}

// within does something that takes long, for at most the limit if there is one, and gives a sign of life while it does.
func (e *Executor) within(
	ctx context.Context, limit time.Duration, what string, action func(context.Context) error,
) error {
	return timeouts.Work{Limit: limit, What: what, Tell: e.progress}.Run(ctx, e.Clock, action)
}
