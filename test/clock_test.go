package test

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// pumpClock advances a clock by a step at each tick of the real clock, until the test ends. In a busy process, ticks
// are late and the pumped clock slows down, so a busy process causes no timeouts.
func pumpClock(t *testing.T, clock *clocktesting.FakeClock, step time.Duration) {
	t.Helper()
	pumpBy(t, clock, func() time.Duration { return step })
}

// pumpAtRest advances a clock about ten times as fast as the real clock while busy reports false, and at real speed
// otherwise. Waits end quickly, and work takes no longer than in real time.
func pumpAtRest(t *testing.T, clock *clocktesting.FakeClock, busy func() bool) {
	t.Helper()
	pumpBy(t, clock, func() time.Duration {
		if busy() {
			return pumpInterval
		}
		return tenfoldStep
	})
}

// pumpInterval is the time between two steps.
const pumpInterval = 5 * time.Millisecond

func pumpBy(t *testing.T, clock *clocktesting.FakeClock, step func() time.Duration) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(pumpInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				clock.Step(step())
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
}

// tenfoldStep is the step of a clock that runs about ten times as fast as the real clock.
const tenfoldStep = 50 * time.Millisecond
