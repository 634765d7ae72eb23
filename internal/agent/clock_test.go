package agent_test

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
)

// serviceClock is the clock of the agent's service. It detects when the service has finished the work of a tick
// and waits for the next tick.
type serviceClock struct {
	*clocktesting.FakeClock
	mu     sync.Mutex
	ticker *pollTicker // of the service that started last
	waits  bool
	waited int // number of waits started
}

func newServiceClock() *serviceClock {
	return &serviceClock{FakeClock: clocktesting.NewFakeClock(time.Now())}
}

// NewTicker implements clock.WithTicker.
func (c *serviceClock) NewTicker(interval time.Duration) clock.Ticker {
	ticker := c.FakeClock.NewTicker(interval)
	if interval != timeouts.DriftPollInterval {
		return ticker
	}
	polling := &pollTicker{Ticker: ticker, clock: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ticker, c.waits = polling, false
	return polling
}

// isIdle reports whether the service waits for its next poll.
func (c *serviceClock) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits
}

// completedPolls returns the number of completed polls of all services.
func (c *serviceClock) completedPolls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waited
}

// Step advances the clock. A waiting service must do its next poll if the poll is due.
func (c *serviceClock) Step(d time.Duration) {
	c.mu.Lock()
	if d >= timeouts.DriftPollInterval {
		c.waits = false
	}
	c.mu.Unlock()
	c.FakeClock.Step(d)
}

// pollTicker is the ticker of the poll loop, which requests the channel whenever it starts to wait.
type pollTicker struct {
	clock.Ticker
	clock *serviceClock
}

func (t *pollTicker) C() <-chan time.Time {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.clock.ticker == t {
		t.clock.waits = true
		t.clock.waited++
	}
	return t.Ticker.C()
}

func (t *pollTicker) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.clock.ticker == t {
		t.clock.ticker, t.clock.waits = nil, false
	}
	t.Ticker.Stop()
}

// verbClock is the clock of an agent command. A step is requested only while the command waits for nothing
// else: time that passes while the command works could exceed a timeout, depending on the load of the machine.
type verbClock struct {
	*clocktesting.FakeClock
	idle chan struct{}
}

func newVerbClock() *verbClock {
	return &verbClock{FakeClock: clocktesting.NewFakeClock(time.Now()), idle: make(chan struct{}, 1)}
}

// NewTimer implements clock.Clock. A command does nothing between two polls.
func (c *verbClock) NewTimer(duration time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(duration)
	if duration == timeouts.PollInterval {
		select {
		case c.idle <- struct{}{}:
		default: // a step is already requested, also for this timer
		}
	}
	return timer
}

// passWhileHanging requests steps until the context is done: a part of Windows does not respond, and only a
// timeout can end the wait.
func (c *verbClock) passWhileHanging(ctx context.Context) {
	for {
		select {
		case c.idle <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}
