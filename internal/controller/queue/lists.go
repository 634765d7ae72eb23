package queue

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// ErrNotRead means that a decision needs a list that is being read from the API server. The end of the read
// triggers a reconcile.
var ErrNotRead = errors.New("the list is being read from the API server")

// Lists reads all objects of a kind for reconciles that must not wait long.
type Lists[T any] struct {
	Shared *SharedRead[[]T]
	Clock  clock.WithTicker
	// WaitTimeout is the maximum time that a reconcile waits for a list.
	WaitTimeout time.Duration
	// Trigger requests a reconcile. It must not block.
	Trigger func(types.NamespacedName)
}

// Listing is a list that the reconciles of an object have requested.
type Listing[T any] struct {
	reading   *Reading[[]T]
	requested time.Time
	version   string // of the object at the request
}

// maxListAge is the maximum age of the request for a list that a reconcile uses. Reading a list takes seconds.
const maxListAge = time.Minute

// Requests are the lists of a kind that the reconciles of an object have requested: Next is kept for the next
// reconcile, and Current serves the current one.
type Requests[T any] struct {
	Next, Current **Listing[T]
}

// Get returns all objects of a kind, as listed by the API server after the version of the reconciled object was
// written. The objects are shared with other reconciles, and callers must not modify them. Get returns ErrNotRead if
// the read takes longer than WaitTimeout; the end of the read then triggers a reconcile.
func (l Lists[T]) Get(ctx context.Context, name types.NamespacedName, version string, requests Requests[T],
	read func(context.Context) ([]T, error)) ([]T, error) {
	if present := *requests.Current; present != nil {
		return present.reading.Value()
	}
	listing := *requests.Next
	if listing == nil || listing.version != version || l.Clock.Since(listing.requested) > maxListAge {
		listing = &Listing[T]{l.Shared.Request(ctx, l.Clock, read), l.Clock.Now(), version}
		if !l.waitForList(ctx, listing) {
			*requests.Next = listing
			go func() {
				<-listing.reading.Done()
				l.Trigger(name)
			}()
			return nil, ErrNotRead
		}
	}
	select {
	case <-listing.reading.Done():
	default:
		return nil, ErrNotRead
	}
	*requests.Next, *requests.Current = nil, listing
	return listing.reading.Value()
}

// waitForList reports whether the list was read within WaitTimeout.
func (l Lists[T]) waitForList(ctx context.Context, listing *Listing[T]) bool {
	ctx, cancel := context.WithTimeout(ctx, l.WaitTimeout)
	defer cancel()
	select {
	case <-listing.reading.Done():
		return true
	case <-ctx.Done():
		return false
	}
}
