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

// Tell takes a sign of life of something that takes long, as fmt.Sprintf takes its arguments.
type Tell func(format string, arguments ...any)

// Sleep waits on the clock. It returns the cause when ctx is done before.
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

// Work is something that takes long.
type Work struct {
	// Limit is the longest time that it may take; zero for as long as it takes.
	Limit time.Duration
	// Grace is how long it may take to stop once it was told to. Then nobody waits for it any more, and it goes on by
	// itself until the process ends. Zero for what stops by itself when its context is done.
	Grace time.Duration
	// Remedy says what to do about something that has not stopped within the grace.
	Remedy string
	// What says in words what is done: "service kubelet starts".
	What string
	// Tell takes a line each HeartbeatInterval.
	Tell Tell
}

// Run does the action for at most the limit, and gives a sign of life while it does. After the limit the action's
// context is done, and the error is a verb.Failure that says so. With a grace, Run ends when limit and grace have passed,
// whatever the action does.
func (w Work) Run(ctx context.Context, on clock.WithTicker, action func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended, watched := make(chan struct{}), make(chan struct{})
	var late <-chan time.Time // The limit counts from here, whenever the goroutine begins.
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

// errStuck is in place of the error of an action that was told to stop and has not within the grace.
var errStuck = errors.New("it has not stopped")

// await does the action, and waits for it no longer than the grace allows.
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

// stuck is the error of an action that has not stopped.
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
			default: // whoever listens must not take the silence for the end
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
