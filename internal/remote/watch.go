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
}

func newWatch(c clock.WithTicker, waiting string, limit time.Duration) *watch {
	return &watch{clock: c, changed: make(chan struct{}, 1), waiting: waiting, limit: limit, last: c.Now()}
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

// left returns the time until the limit passes, and the error when it has passed.
func (w *watch) left() (time.Duration, *TimeoutError) {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if left := w.limit - now.Sub(w.last); left > 0 {
		return left, nil
	}
	return 0, &TimeoutError{Waiting: w.waiting, Limit: w.limit}
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
