package agent_test

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
)

// serviceClock is the clock of the agent's service. It knows when the service has done what it does at a tick and waits
// for the next one.
type serviceClock struct {
	*clocktesting.FakeClock
	mu     sync.Mutex
	looks  *lookTicker // of the service that began last
	waits  bool
	waited int // how often it began to wait
}

func newServiceClock() *serviceClock {
	return &serviceClock{FakeClock: clocktesting.NewFakeClock(time.Now())}
}

// NewTicker is clock.WithTicker's.
func (c *serviceClock) NewTicker(interval time.Duration) clock.Ticker {
	ticker := c.FakeClock.NewTicker(interval)
	if interval != timeouts.DriftPoll {
		return ticker
	}
	looks := &lookTicker{Ticker: ticker, clock: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks, c.waits = looks, false
	return looks
}

// isIdle reports whether the service waits for its next look.
func (c *serviceClock) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits
}

// looked is how many looks of all services have ended.
func (c *serviceClock) looked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waited
}

// Step lets time pass. A service that waits has its next look to do, if it is due.
func (c *serviceClock) Step(d time.Duration) {
	c.mu.Lock()
	if d >= timeouts.DriftPoll {
		c.waits = false
	}
	c.mu.Unlock()
	c.FakeClock.Step(d)
}

// lookTicker is the ticker of the loop of looks, which asks for the channel whenever it begins to wait.
type lookTicker struct {
	clock.Ticker
	clock *serviceClock
}

func (t *lookTicker) C() <-chan time.Time {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.clock.looks == t {
		t.clock.waits = true
		t.clock.waited++
	}
	return t.Ticker.C()
}

func (t *lookTicker) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.clock.looks == t {
		t.clock.looks, t.clock.waits = nil, false
	}
	t.Ticker.Stop()
}

// verbClock is the clock of a verb. It asks for time to pass when the verb has nothing else to wait for: time that passes
// while a verb works ends the limits of its work, and more of it passes on a busy machine.
type verbClock struct {
	*clocktesting.FakeClock
	idle chan struct{}
}

func newVerbClock() *verbClock {
	return &verbClock{FakeClock: clocktesting.NewFakeClock(time.Now()), idle: make(chan struct{}, 1)}
}

// NewTimer is clock.Clock's. Between two looks a verb does nothing.
func (c *verbClock) NewTimer(duration time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(duration)
	if duration == timeouts.PollInterval {
		select {
		case c.idle <- struct{}{}:
		default: // time is yet to pass, also for this timer
		}
	}
	return timer
}

// passWhileHanging asks for time to pass until the context is done: a part of Windows does not answer, and only a limit
// can end the wait for it.
func (c *verbClock) passWhileHanging(ctx context.Context) {
	for {
		select {
		case c.idle <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}
