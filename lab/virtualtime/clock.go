// Package virtualtime provides a clock with waits that cost no real time. The clock stands still while any
// goroutine works, even on a busy machine, and jumps to the next timer when all are idle. It therefore measures
// waits and not computation: a wait of ten minutes ends at once, and a slow machine makes no wait longer.
package virtualtime

import (
	"container/heap"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock is a virtual clock. Time passes only in Run.
type Clock struct {
	mu      sync.Mutex
	now     time.Time
	timers  queue
	created int
	stride  time.Duration
}

var _ clock.WithTicker = (*Clock)(nil)

// New creates a clock with the time now.
func New(now time.Time) *Clock { return &Clock{now: now} }

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After implements clock.Clock.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Sleep implements clock.Clock.
func (c *Clock) Sleep(d time.Duration) { <-c.After(d) }

// Tick implements clock.Clock.
func (c *Clock) Tick(d time.Duration) <-chan time.Time { return c.NewTicker(d).C() }

// NewTimer implements clock.Clock.
func (c *Clock) NewTimer(d time.Duration) clock.Timer { return c.start(d, 0) }

// NewTicker implements clock.WithTicker. Like the ticker of package time, it panics if d is not positive.
func (c *Clock) NewTicker(d time.Duration) clock.Ticker {
	if d <= 0 {
		panic("virtualtime: the period of a ticker is not positive")
	}
	return ticker{c.start(d, d)}
}

func (c *Clock) start(d, period time.Duration) *timer {
	t := &timer{clock: c, period: period, channel: make(chan time.Time, 1), index: notQueued}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scheduleTimer(t, d)
	return t
}

// scheduleTimer starts a timer. The caller holds the lock.
func (c *Clock) scheduleTimer(t *timer, d time.Duration) {
	if d <= 0 {
		t.sendTick(c.now)
		return
	}
	c.created++
	t.due, t.wait, t.number = c.now.Add(d), d, c.created
	heap.Push(&c.timers, t)
}

// timeToNext returns the time to the next timer; false if there is none.
func (c *Clock) timeToNext() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return 0, false
	}
	return c.timers[0].due.Sub(c.now), true
}

// leapGranularity is the time span of timers that fire together in a leap: a transfer has thousands of timers.
const leapGranularity = 2 * time.Millisecond

// maxPollWait is the maximum wait of a timer that polls an operation in progress.
const maxPollWait = time.Second

// Stride sets the time span of a leap over many timers, for labs that are mostly idle for days: a ticker that
// is skipped several times ticks once. A timer with a duration below one second means that an operation is in
// progress. The clock then still leaps from timer to timer, because otherwise timeouts would expire together
// with the operation. Zero ends the strides.
func (c *Clock) Stride(stride time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stride = stride
}

// leapSpan returns the time span of timers that fire together in a leap. The caller holds the lock.
func (c *Clock) leapSpan() time.Duration {
	if slices.ContainsFunc(c.timers, func(t *timer) bool { return t.period == 0 && t.wait < maxPollWait }) {
		return leapGranularity
	}
	return max(leapGranularity, c.stride)
}

// leapForward advances to the next timer if it is within the limit, and from there to the last timer within a grain or
// a stride.
func (c *Clock) leapForward(atMost time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 || c.timers[0].due.Sub(c.now) > atMost {
		return
	}
	for end := c.timers[0].due.Add(c.leapSpan()); len(c.timers) > 0 && !c.timers[0].due.After(end); {
		t := c.timers[0]
		heap.Remove(&c.timers, t.index)
		c.now = t.due
		t.sendTick(c.now)
		if t.period > 0 {
			c.scheduleTimer(t, t.period)
		}
	}
}

// timer is a timer, or a ticker if it has a period.
type timer struct {
	clock   *Clock
	channel chan time.Time
	period  time.Duration

	// Guarded by the clock's lock:
	due    time.Time
	wait   time.Duration // duration at the last set
	number int           // order of creation, for timers that are due at the same time
	index  int           // index in the queue
}

// notQueued is the index of a timer that is not in the queue.
const notQueued = -1

// C implements clock.Timer.
func (t *timer) C() <-chan time.Time { return t.channel }

// Stop implements clock.Timer.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.stop()
}

func (t *timer) stop() bool {
	waits := t.index != notQueued
	if waits {
		heap.Remove(&t.clock.timers, t.index)
	}
	select { // like package time: no value from before a Stop or a Reset is received
	case <-t.channel:
	default:
	}
	return waits
}

// Reset implements clock.Timer.
func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	waited := t.stop()
	t.clock.scheduleTimer(t, d)
	return waited
}

func (t *timer) sendTick(now time.Time) {
	select {
	case t.channel <- now:
	default: // a slow receiver misses ticks
	}
}

// ticker is a timer with the methods of a ticker only.
type ticker struct{ timer *timer }

// C implements clock.Ticker.
func (t ticker) C() <-chan time.Time { return t.timer.C() }

// Stop implements clock.Ticker.
func (t ticker) Stop() { t.timer.Stop() }

// queue is a heap of timers, sorted by due time.
type queue []*timer

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].due.Equal(q[j].due) {
		return q[i].number < q[j].number
	}
	return q[i].due.Before(q[j].due)
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	t, _ := x.(*timer) // only timers are pushed
	t.index = len(*q)
	*q = append(*q, t)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.index = notQueued
	return t
}
