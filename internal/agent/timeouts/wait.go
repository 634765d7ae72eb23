package timeouts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agentapi"
)

// ProgressFunc receives progress reports of a long action, with the arguments of fmt.Sprintf.
type ProgressFunc func(format string, arguments ...any)

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

// Operation describes a long action.
type Operation struct {
	// Timeout is the timeout of the action; zero for none.
	Timeout time.Duration
	// GracePeriod is the maximum time for the action to stop after cancellation. Afterwards Run no longer waits, and
	// the action continues in the background until the process ends. Zero for actions that stop when their
	// context is done.
	GracePeriod time.Duration
	// Remedy is advice for an action that has not stopped within the grace period.
	Remedy string
	// What is the action as a participle: "starting service kubelet".
	What string
	// Progress receives a line each HeartbeatInterval.
	Progress ProgressFunc
}

// Run runs the action with the limit, and reports progress meanwhile. After the limit, the context of the
// action is canceled, and the error is an agentapi.Failure that names the limit. With a grace period, Run
// returns after limit and grace period even if the action continues.
func (w Operation) Run(ctx context.Context, on clock.WithTicker, action func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended, watched := make(chan struct{}), make(chan struct{})
	var late <-chan time.Time // the limit starts here, regardless of the start of the goroutine
	if w.Timeout > 0 {
		timer := on.NewTimer(w.Timeout)
		defer timer.Stop()
		late = timer.C()
	}
	go func() {
		defer close(watched)
		w.watchProgress(on, late, ended, cancel)
	}()
	err := w.awaitAction(ctx, on, action)
	close(ended)
	<-watched
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, errStuck):
		return w.stuckError(cause)
	case err != nil && cause != nil:
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// errStuck replaces the error of an action that was canceled and has not stopped within the grace period.
var errStuck = errors.New("the action has not stopped")

// awaitAction runs the action, and after cancellation waits at most for the grace period.
func (w Operation) awaitAction(ctx context.Context, on clock.Clock, action func(context.Context) error) error {
	if w.GracePeriod == 0 {
		return action(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- action(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := on.NewTimer(w.GracePeriod)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C():
		return errStuck
	}
}

// stuckError returns the error of an action that has not stopped.
func (w Operation) stuckError(cause error) error {
	var late *agentapi.Failure
	message := w.What + " was canceled"
	if errors.As(cause, &late) {
		message = late.Message
	}
	message += fmt.Sprintf(", and has not stopped within %s. %s", w.GracePeriod, w.Remedy)
	return &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Message: strings.TrimSpace(message)}
}

func (w Operation) watchProgress(
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
			case w.Timeout == 0:
				w.Progress("%s: %s elapsed", w.What, took)
			case took <= w.Timeout:
				w.Progress("%s: %s elapsed, timeout %s", w.What, took, w.Timeout)
			default: // readers must not take silence for the end
				w.Progress("%s: %s elapsed; canceled after %s", w.What, took, w.Timeout)
			}
		case <-late:
			cancel(&agentapi.Failure{
				Reason: agentapi.ReasonStepFailed, Message: fmt.Sprintf("%s took longer than %s", w.What, w.Timeout),
			})
			late = nil
		}
	}
}
