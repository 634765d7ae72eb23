package test

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// How fast time passes for operators and hosts: retries that take seconds are not waited for.
const (
	tick     = 50 * time.Millisecond
	fastStep = 500 * time.Millisecond
	slowStep = 100 * time.Millisecond
)

// fastClock returns a clock that runs until the test ends, less fast while slow says so.
func fastClock(t *testing.T, slow func() bool) *clocktesting.FakeClock {
	clock := clocktesting.NewFakeClock(time.Now())
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(tick)
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
