package remote

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// watch limits the time without activity during a wait. The time is measured by the injected clock, not by network
// deadlines.
type watch struct {
	clock   clock.WithTicker
	changed chan struct{} // signals a changed limit

	mu      sync.Mutex
	waiting string // completes "waited 10s for …"
	timeout time.Duration
	last    time.Time
	end     time.Time     // deadline regardless of activity; zero for none
	overall time.Duration // time from the start to end
}

func newWatch(c clock.WithTicker, waiting string, limit time.Duration) *watch {
	return &watch{clock: c, changed: make(chan struct{}, 1), waiting: waiting, timeout: limit, last: c.Now()}
}

// limitTotal also limits the total time, regardless of activity.
func (w *watch) limitTotal(overall time.Duration) *watch {
	w.overall, w.end = overall, w.last.Add(overall)
	return w
}

// recordActivity records activity.
func (w *watch) recordActivity() {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = now
}

// expectNext records activity and sets the next awaited event and its limit.
func (w *watch) expectNext(waiting string, limit time.Duration) {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting, w.last = waiting, now
	if w.timeout == limit {
		return
	}
	w.timeout = limit
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// timeLeft returns the time until a limit passes, or an error if a limit has passed.
func (w *watch) timeLeft() (time.Duration, *TimeoutError) {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	left, timeout := w.timeout-now.Sub(w.last), TimeoutError{Waiting: w.waiting, Limit: w.timeout}
	if !w.end.IsZero() && w.end.Sub(now) < left {
		left, timeout.Limit, timeout.Overall = w.end.Sub(now), w.overall, true
	}
	if left > 0 {
		return left, nil
	}
	return 0, &timeout
}

// waitFor waits for done. It returns nil when done was closed, the context's cause if the context ended first, and a
// TimeoutError if the limit passed.
func (w *watch) waitFor(ctx context.Context, done <-chan struct{}) error {
	left, _ := w.timeLeft()
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
		left, timeout := w.timeLeft()
		if timeout != nil {
			return timeout
		}
		timer.Reset(left)
	}
}
