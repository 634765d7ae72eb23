package queue

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// restFactor is the pause after a read, as a multiple of its duration. Reads therefore take at most a tenth of
	// the time, regardless of the number of requests, unless maxRest shortens the pause.
	restFactor  = 9
	maxRest     = 5 * time.Second
	readTimeout = time.Minute
)

// SharedRead reads a large result from the API server once for all concurrent requests. The zero value is ready to
// use.
type SharedRead[T any] struct {
	mu   sync.Mutex
	next *Reading[T] // not started: shared by new requests

	slot      chan struct{} // holds a token during a read
	notBefore time.Time     // no read before this time; used only by the current read
}

// Reading is a read of the API server, possibly shared by several requests.
type Reading[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// Done returns a channel that is closed when the read has ended.
func (r *Reading[T]) Done() <-chan struct{} { return r.done }

// Value returns the result of an ended read. The value is shared, and callers must not modify it.
func (r *Reading[T]) Value() (T, error) { return r.value, r.err }

// Get returns the result of a read that started after the call of Get. The value is shared, and callers must not
// modify it.
func (r *SharedRead[T]) Get(ctx context.Context, clock clock.WithTicker, read func(context.Context) (T, error)) (T, error) {
	requested := r.Request(ctx, clock, read)
	select {
	case <-requested.done:
		return requested.Value()
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("wait for a read of the API server: %w", context.Cause(ctx))
	}
}

// Request returns a read that starts after the call of Request.
func (r *SharedRead[T]) Request(ctx context.Context, clock clock.WithTicker, read func(context.Context) (T, error)) *Reading[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil {
		return r.next
	}
	if r.slot == nil {
		r.slot = make(chan struct{}, 1)
	}
	r.next = &Reading[T]{done: make(chan struct{})}
	go r.run(ctx, clock, r.next, read)
	return r.next
}

// run waits for earlier reads, and then reads. The waiting callers do not depend on the context of the first
// caller. A panic of the read is returned to all callers as an error.
func (r *SharedRead[T]) run(ctx context.Context, clock clock.WithTicker, mine *Reading[T], read func(context.Context) (T, error)) {
	r.slot <- struct{}{}
	defer func() { <-r.slot }()
	defer close(mine.done)
	if wait := r.notBefore.Sub(clock.Now()); wait > 0 {
		<-clock.After(wait)
	}
	r.mu.Lock()
	r.next = nil
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	begin := clock.Now()
	mine.value, mine.err = readWithRecover(ctx, read)
	end := clock.Now()
	r.notBefore = end.Add(min(restFactor*end.Sub(begin), maxRest))
}

// readWithRecover reads, and converts a panic to an error. The read has its own goroutine, and no other code recovers
// there.
func readWithRecover[T any](ctx context.Context, read func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic during a read of the API server: %v", cause)
			log.FromContext(ctx).Error(err, "report this to the operator's maintainers", "stack", string(debug.Stack()))
		}
	}()
	return read(ctx)
}
