package timeouts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/verb"
)

// Tell receives progress reports of a long action, with the arguments of fmt.Sprintf.
type Tell func(format string, arguments ...any)

// Sleep waits on the clock. It returns the cause if ctx is done earlier.
func Sleep(ctx context.Context, on clock.Clock, duration time.Duration) error {
	timer := on.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Work describes a long action.
type Work struct {
	// Limit is the timeout of the action; zero for none.
	Limit time.Duration
	// Grace is the maximum time for the action to stop after cancellation. Afterwards Run no longer waits, and
	// the action continues in the background until the process ends. Zero for actions that stop when their
	// context is done.
	Grace time.Duration
	// Remedy is advice for an action that has not stopped within the grace.
	Remedy string
	// What describes the action: "service kubelet starts".
	What string
	// Tell receives a line each HeartbeatInterval.
	Tell Tell
}

// Run runs the action with the limit, and reports progress meanwhile. After the limit, the context of the
// action is canceled, and the error is a verb.Failure that names the limit. With a grace, Run returns after
// limit and grace even if the action continues.
func (w Work) Run(ctx context.Context, on clock.WithTicker, action func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended, watched := make(chan struct{}), make(chan struct{})
	var late <-chan time.Time // the limit starts here, regardless of the start of the goroutine
	if w.Limit > 0 {
		timer := on.NewTimer(w.Limit)
		defer timer.Stop()
		late = timer.C()
	}
	go func() {
		defer close(watched)
		w.watch(on, late, ended, cancel)
	}()
	err := w.await(ctx, on, action)
	close(ended)
	<-watched
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, errStuck):
		return w.stuck(cause)
	case err != nil && cause != nil:
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// errStuck replaces the error of an action that was canceled and has not stopped within the grace.
var errStuck = errors.New("it has not stopped")

// await runs the action, and after cancellation waits at most for the grace.
func (w Work) await(ctx context.Context, on clock.Clock, action func(context.Context) error) error {
	if w.Grace == 0 {
		return action(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- action(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := on.NewTimer(w.Grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C():
		return errStuck
	}
}

// stuck returns the error of an action that has not stopped.
func (w Work) stuck(cause error) error {
	var late *verb.Failure
	message := w.What + " was canceled"
	if errors.As(cause, &late) {
		message = late.Message
	}
	message += fmt.Sprintf(", and has not stopped within %s. %s", w.Grace, w.Remedy)
	return &verb.Failure{Reason: verb.ReasonStepFailed, Message: strings.TrimSpace(message)}
}

func (w Work) watch(
	on clock.WithTicker, late <-chan time.Time, ended <-chan struct{}, cancel context.CancelCauseFunc,
) {
	ticker := on.NewTicker(HeartbeatInterval)
	defer ticker.Stop()
	began := on.Now()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C():
			took := on.Since(began).Round(time.Second)
			switch {
			case w.Limit == 0:
				w.Tell("%s, for %s", w.What, took)
			case took <= w.Limit:
				w.Tell("%s, for %s of at most %s", w.What, took, w.Limit)
			default: // readers must not take silence for the end
				w.Tell("%s, for %s; canceled after %s", w.What, took, w.Limit)
			}
		case <-late:
			cancel(&verb.Failure{
				Reason: verb.ReasonStepFailed, Message: fmt.Sprintf("%s took longer than %s", w.What, w.Limit),
			})
			late = nil
		}
	}
}
