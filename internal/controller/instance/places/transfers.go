package places

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Limits of transfers of programs to hosts.
const (
	// transferLimit is how many hosts are sent programs at the same time. Each can take 40 MB/s over a round trip of 50 ms,
	// because 2 MiB are under way: a few of them fill what a pod's network and its share of a processor carry, and more
	// would only make all of them finish late. Each takes about 4 MiB of memory.
	transferLimit = 16
	// slowTransferLimit is how many more hosts go on with a transfer that has lasted longer than transferShare, beside
	// those that come after them: hosts on a slow line do not hold up the others.
	slowTransferLimit = 48
	transferShare     = 2 * time.Minute
)

// Transfers limits how many hosts are sent programs at once. The host that was sent some first goes first: it is done
// before others begin, and all of them do not wait for one another at each step of their way. The zero value works.
type Transfers struct {
	mu         sync.Mutex
	fast, slow int
	last       Order
	waiting    []*transfer // in the order in which they go
	overdue    []*transfer // have had their share of time and no room among the slow ones yet, the longest first
}

// Order is the place of a host among those that are sent programs. A host that was sent none yet has zero.
type Order uint64

type transfer struct {
	order Order
	may   chan struct{} // closed when it may begin
	slow  bool          // counts as slow
}

// Begin waits until the host may be sent programs, and returns what ends that. The order is kept for the host until its
// work is done. Waits is called if the host must wait.
func (t *Transfers) Begin(ctx context.Context, clock clock.WithTicker, order *Order, waits func()) (end func(), err error) {
	mine, first := t.queue(order)
	begun := false
	defer func() {
		if !begun { // its time is up, or waits has panicked
			t.leave(mine)
		}
	}()
	if !first {
		waits()
	}
	select {
	case <-mine.may:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait until other hosts have got their programs: %w", context.Cause(ctx))
	}
	begun = true
	ended := make(chan struct{})
	go t.watch(clock.NewTimer(transferShare), mine, ended)
	return sync.OnceFunc(func() { close(ended) }), nil
}

// queue puts a transfer into the line, and reports whether it may begin at once.
func (t *Transfers) queue(order *Order) (mine *transfer, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if *order == 0 {
		t.last++
		*order = t.last
	}
	mine = &transfer{order: *order, may: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(t.waiting, mine, func(a, b *transfer) int { return int(int64(a.order) - int64(b.order)) }) //nolint:gosec // G115: there are not that many hosts
	t.waiting = slices.Insert(t.waiting, at, mine)
	t.next()
	select {
	case <-mine.may:
		return mine, true
	default:
		return mine, false
	}
}

// next counts those that are overdue as slow, and lets those begin that have room. It is called with t locked.
func (t *Transfers) next() {
	for t.slow < slowTransferLimit && len(t.overdue) > 0 {
		t.overdue[0].slow = true
		t.overdue = slices.Delete(t.overdue, 0, 1)
		t.slow, t.fast = t.slow+1, t.fast-1
	}
	for t.fast < transferLimit && len(t.waiting) > 0 {
		close(t.waiting[0].may)
		t.waiting = slices.Delete(t.waiting, 0, 1)
		t.fast++
	}
}

// leave takes a transfer out of the line that does not begin.
func (t *Transfers) leave(mine *transfer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-mine.may: // it was let in at the last moment
		t.fast--
	default:
		t.waiting = without(t.waiting, mine)
	}
	t.next()
}

// watch gives the room of a transfer to another one when it ends, or when it has had its share of time.
func (t *Transfers) watch(share clock.Timer, mine *transfer, ended <-chan struct{}) {
	defer share.Stop()
	select {
	case <-ended:
	case <-share.C():
		t.late(mine)
		<-ended
	}
	t.done(mine)
}

// late notes that a transfer has had its share of time.
func (t *Transfers) late(mine *transfer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.overdue = append(t.overdue, mine)
	t.next()
}

// done gives the room of a transfer back.
func (t *Transfers) done(mine *transfer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.slow {
		t.slow--
	} else {
		t.fast--
		t.overdue = without(t.overdue, mine)
	}
	t.next()
}

func without(all []*transfer, one *transfer) []*transfer {
	return slices.DeleteFunc(all, func(other *transfer) bool { return other == one })
}
