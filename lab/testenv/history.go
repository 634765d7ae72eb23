package testenv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// History records each change of objects in the order of the API server's store, from Follow on. No change is missed,
// even if the API server was restarted.
type History struct {
	env   *Environment
	stop  context.CancelFunc
	group sync.WaitGroup

	mu        sync.Mutex
	kinds     []*FollowedKind
	initial   int // number of leading changes that are the initial state
	changes   []Change
	lost      int           // number of watches that could not resume after an interruption
	wakeAfter chan struct{} // closed with the next change
}

// Change is a change of one object; a deletion if Object is nil.
type Change struct {
	// Revision is the revision of the change in the API server's store, which has one order for all kinds.
	Revision uint64
	// At is the time of the observation, by the clock of hosts and operator.
	At time.Time
	// Kind is the name of the FollowedKind, and Name the name of the object with its namespace.
	Kind, Name string
	Object     client.Object
}

// Follow starts a history and returns when the current state is known.
func (r *Environment) Follow(ctx context.Context, kinds ...*FollowedKind) (*History, error) {
	following, stop := context.WithCancel(r.running)
	h := &History{env: r, stop: stop, kinds: kinds, wakeAfter: make(chan struct{})}
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
		h.group.Go(func() { h.followKind(following, kind, from[i]) })
	}
	return h, nil
}

// recordObject records a change of an object unless it is known.
func (h *History) recordObject(kind *FollowedKind, object client.Object, deleted bool) error {
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
	h.appendChange(Change{Revision: revision, At: h.currentTime(), Kind: kind.Name, Name: name, Object: object})
	return nil
}

// appendChange appends a change. The caller holds the lock.
func (h *History) appendChange(c Change) {
	h.changes = append(h.changes, c)
	close(h.wakeAfter)
	h.wakeAfter = make(chan struct{})
}

func (h *History) currentTime() time.Time { return h.env.options.Clock.Now() }

// Changes waits until all changes in the API server are recorded. It returns the initial state and all changes so
// far. Following continues.
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
	// A change occurred before a later revision was reported.
	for i := len(later) - 2; i >= 0; i-- {
		if later[i+1].At.Before(later[i].At) {
			later[i].At = later[i+1].At
		}
	}
	return initial, later, nil
}

// Lost returns the number of watches that could not resume after an interruption. The missed changes were read from
// the API server's store.
func (h *History) Lost() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// Stop stops the history.
func (h *History) Stop() {
	h.stop()
	h.group.Wait()
}

func keyOf(object client.Object) string { return client.ObjectKeyFromObject(object).String() }
