package rigtest

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// FastClock returns a clock for hosts and operator that runs until the test ends, about ten times as fast as the real
// one: limits of minutes are not waited for. It is advanced at each tick of the real one. A busy process sees its ticks
// late, and so its clock slows down: no limit passes because of it.
func FastClock(t *testing.T) *clocktesting.FakeClock {
	const tick, step = 10 * time.Millisecond, 100 * time.Millisecond
	clock := clocktesting.NewFakeClock(time.Now())
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				clock.Step(step)
			case <-ended:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(ended)
		<-stopped
	})
	return clock
}
