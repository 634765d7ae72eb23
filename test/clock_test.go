package test

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// pump advances a clock until the test ends, by a step at each tick of the real one. A busy process sees its ticks late, and so its
// clock slows down: no limit passes because of it.
func pump(t *testing.T, clock *clocktesting.FakeClock, step time.Duration) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				clock.Step(step)
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
