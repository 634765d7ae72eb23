package rig

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// History has each change of objects in the order of the API server's store, from Follow on. Nothing is left out, not
// even what happened while the API server was restarted.
type History struct {
	rig   *Rig
	stop  context.CancelFunc
	group sync.WaitGroup

	mu        sync.Mutex
	kinds     []*FollowedKind
	initial   int // so many of the changes are the state at the beginning
	changes   []Change
	lost      int           // how often a watch could not go on where it had ended
	wakeAfter chan struct{} // closed with the next change
}

// Change is one object's change, or its end when Object is nil.
type Change struct {
	// Revision is the change's in the API server's store, which has one order for all kinds.
	Revision uint64
	// At is when it was seen, by the clock of hosts and operator.
	At time.Time
	// Kind is the FollowedKind's name, and Name the object's with its namespace.
	Kind, Name string
	Object     client.Object
}

// Follow begins a history. It returns when the present is known.
func (r *Rig) Follow(ctx context.Context, kinds ...*FollowedKind) (*History, error) {
	following, stop := context.WithCancel(r.running)
	h := &History{rig: r, stop: stop, kinds: kinds, wakeAfter: make(chan struct{})}
	from := make([]string, len(kinds))
	for i, kind := range kinds {
		revision, err := h.listAt(ctx, kind)
		if err != nil {
			stop()
			return nil, fmt.Errorf("follow %s: %w", kind.Name, err)
		}
		from[i] = revision
	}
	h.initial = len(h.changes)
	for i, kind := range kinds {
		h.group.Go(func() { h.follow(following, kind, from[i]) })
	}
	return h, nil
}

// record keeps an object's change, unless it is known.
func (h *History) record(kind *FollowedKind, object client.Object, deleted bool) error {
	revision, err := revisionOf(object.GetResourceVersion())
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	name := keyOf(object)
	if kind.revisions == nil {
		kind.revisions = map[string]uint64{}
	}
	switch known := kind.revisions[name]; {
	case deleted:
		delete(kind.revisions, name)
		object = nil
	case known >= revision:
		return nil
	default:
		kind.revisions[name] = revision
	}
	h.add(Change{Revision: revision, At: h.now(), Kind: kind.Name, Name: name, Object: object})
	return nil
}

// add keeps a change. The lock is held.
func (h *History) add(c Change) {
	h.changes = append(h.changes, c)
	close(h.wakeAfter)
	h.wakeAfter = make(chan struct{})
}

func (h *History) now() time.Time { return h.rig.options.Clock.Now() }

// Changes returns the state at the beginning and all changes until now, and continues to follow. It first waits for
// everything that the API server has.
func (h *History) Changes(ctx context.Context) (initial, later []Change, err error) {
	for _, kind := range h.kinds {
		if err := h.catchUp(ctx, kind); err != nil {
			return nil, nil, err
		}
	}
	h.mu.Lock()
	initial, later = h.changes[:h.initial], slices.Clone(h.changes[h.initial:])
	h.mu.Unlock()
	slices.SortStableFunc(later, func(x, y Change) int { return cmp.Compare(x.Revision, y.Revision) })
	// A change was there before one with a later revision was told.
	for i := len(later) - 2; i >= 0; i-- {
		if later[i+1].At.Before(later[i].At) {
			later[i].At = later[i+1].At
		}
	}
	return initial, later, nil
}

// Lost is how often a watch could not go on where it had ended. What it has missed was read from the API server's store.
func (h *History) Lost() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// Stop ends it.
func (h *History) Stop() {
	h.stop()
	h.group.Wait()
}

func keyOf(object client.Object) string { return client.ObjectKeyFromObject(object).String() }
