package remote

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// watch limits how long nothing may happen while something is waited for. Its time is the injected clock's, not the
// network's.
type watch struct {
	clock   clock.WithTicker
	changed chan struct{} // the limit is another

	mu      sync.Mutex
	waiting string // completes "waited 10s for …"
	limit   time.Duration
	last    time.Time
	end     time.Time     // of all that is waited for, whatever happens; zero for none
	overall time.Duration // from the beginning to the end
}

func newWatch(c clock.WithTicker, waiting string, limit time.Duration) *watch {
	return &watch{clock: c, changed: make(chan struct{}, 1), waiting: waiting, limit: limit, last: c.Now()}
}

// within also limits how long it takes in all, however much happens.
func (w *watch) within(overall time.Duration) *watch {
	w.overall, w.end = overall, w.last.Add(overall)
	return w
}

// alive says that something happened.
func (w *watch) alive() {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = now
}

// expect says that something happened and that from now on something else is waited for.
func (w *watch) expect(waiting string, limit time.Duration) {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting, w.last = waiting, now
	if w.limit == limit {
		return
	}
	w.limit = limit
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// left returns the time until a limit passes, and the error when one has passed.
func (w *watch) left() (time.Duration, *TimeoutError) {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	left, timeout := w.limit-now.Sub(w.last), TimeoutError{Waiting: w.waiting, Limit: w.limit}
	if !w.end.IsZero() && w.end.Sub(now) < left {
		left, timeout.Limit, timeout.Overall = w.end.Sub(now), w.overall, true
	}
	if left > 0 {
		return left, nil
	}
	return 0, &timeout
}

// until waits for done. It returns nil when done was closed, the context's cause when it ended first, and a
// TimeoutError when the limit passed.
func (w *watch) until(ctx context.Context, done <-chan struct{}) error {
	left, _ := w.left()
	timer := w.clock.NewTimer(left)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.changed:
			timer.Stop()
		case <-timer.C():
		}
		left, timeout := w.left()
		if timeout != nil {
			return timeout
		}
		timer.Reset(left)
	}
}
