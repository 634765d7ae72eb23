package timing

import (
	"context"
	"fmt"
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
	// What says in words what is done: "service kubelet starts".
	What string
	// Tell takes a line each HeartbeatInterval.
	Tell Tell
}

// Run does the action for at most the limit, and gives a sign of life while it does. After the limit the action's
// context is done, and the error is a verb.Failure that says so.
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
	err := action(ctx)
	close(ended)
	<-watched
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
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
			if w.Limit == 0 {
				w.Tell("%s, for %s", w.What, on.Since(began).Round(time.Second))
				continue
			}
			w.Tell("%s, for %s of at most %s", w.What, on.Since(began).Round(time.Second), w.Limit)
		case <-late:
			cancel(&verb.Failure{
				Reason: verb.ReasonStepFailed, Message: fmt.Sprintf("%s took longer than %s", w.What, w.Limit),
			})
			return
		}
	}
}
