package test

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// Speed of the clock for operators and hosts, so that retries after seconds cost no real time.
const (
	tickInterval = 50 * time.Millisecond
	fastStep     = 500 * time.Millisecond
	slowStep     = 100 * time.Millisecond
)

// fastClock returns a clock that runs until the test ends, at a lower speed while slow returns true.
func fastClock(t *testing.T, slow func() bool) *clocktesting.FakeClock {
	clock := clocktesting.NewFakeClock(time.Now())
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(tickInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if slow() {
					clock.Step(slowStep)
				} else {
					clock.Step(fastStep)
				}
			case <-ended:
				return
			}
		}
	}()
	t.Cleanup(func() { close(ended); <-stopped })
	return clock
}
