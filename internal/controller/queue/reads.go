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
	// restShare is how many times as long as a reading took nothing is read after it. So readings take at most a tenth of
	// the time, however many ask, and however much there is to read.
	restShare   = 9
	maxRest     = 5 * time.Second
	readTimeout = time.Minute
)

// SharedRead reads something large from the API server once for all that request it at the same time. The zero value works.
type SharedRead[T any] struct {
	mu   sync.Mutex
	next *Reading[T] // has not begun: those that ask now get it

	turn chan struct{} // holds a token while a reading is under way
	rest time.Time     // until when nothing is read; only the reading under way uses it
}

// Reading is a reading of the API server, which several may have requested.
type Reading[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// Done is closed when the reading has ended.
func (r *Reading[T]) Done() <-chan struct{} { return r.done }

// Value returns what a reading that has ended has brought. Others get the same value: it must not be changed.
func (r *Reading[T]) Value() (T, error) { return r.value, r.err }

// Get returns what a reading brings that has begun after Get was called. Others get the same value: it must not be
// changed.
func (r *SharedRead[T]) Get(ctx context.Context, clock clock.WithTicker, read func(context.Context) (T, error)) (T, error) {
	requested := r.Request(ctx, clock, read)
	select {
	case <-requested.done:
		return requested.Value()
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("wait for a reading of the API server: %w", context.Cause(ctx))
	}
}

// Request returns a reading that begins after Request was called.
func (r *SharedRead[T]) Request(ctx context.Context, clock clock.WithTicker, read func(context.Context) (T, error)) *Reading[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil {
		return r.next
	}
	if r.turn == nil {
		r.turn = make(chan struct{}, 1)
	}
	r.next = &Reading[T]{done: make(chan struct{})}
	go r.run(ctx, clock, r.next, read)
	return r.next
}

// run waits for the turn of a reading, and reads. Those that wait for it do not depend on the context of the one that
// asked first, nor is a panic of its reading theirs: they get an error.
func (r *SharedRead[T]) run(ctx context.Context, clock clock.WithTicker, mine *Reading[T], read func(context.Context) (T, error)) {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	defer close(mine.done)
	if wait := r.rest.Sub(clock.Now()); wait > 0 {
		<-clock.After(wait)
	}
	r.mu.Lock()
	r.next = nil
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	begin := clock.Now()
	mine.value, mine.err = guarded(ctx, read)
	end := clock.Now()
	r.rest = end.Add(min(restShare*end.Sub(begin), maxRest))
}

// guarded reads, and makes an error of a panic: the reading has a goroutine of its own, in which nobody else recovers.
func guarded[T any](ctx context.Context, read func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("a reading of the API server has panicked: %v", cause)
			log.FromContext(ctx).Error(err, "report this to the operator's maintainers", "stack", string(debug.Stack()))
		}
	}()
	return read(ctx)
}
