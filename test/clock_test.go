package test

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// pump advances a clock until the test ends, by a step at each tick of the real one. A busy process sees its ticks
// late, and so its clock slows down: no limit passes because of it.
func pump(t *testing.T, clock *clocktesting.FakeClock, step time.Duration) {
	t.Helper()
	pumpBy(t, clock, func() time.Duration { return step })
}

// pumpAtRest makes a clock run about ten times as fast as the real one while nobody is busy, and just as fast as that
// else: what is waited for passes quickly, and what is worked takes no longer than it does.
func pumpAtRest(t *testing.T, clock *clocktesting.FakeClock, busy func() bool) {
	t.Helper()
	pumpBy(t, clock, func() time.Duration {
		if busy() {
			return pumpTick
		}
		return tenfold
	})
}

// pumpTick is the time between two steps.
const pumpTick = 5 * time.Millisecond

func pumpBy(t *testing.T, clock *clocktesting.FakeClock, step func() time.Duration) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(pumpTick)
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

// tenfold makes a pumped clock run about ten times as fast as the real one.
const tenfold = 50 * time.Millisecond
