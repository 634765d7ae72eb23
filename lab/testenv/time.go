package testenv

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/lab/virtualtime"
)

// startTime runs virtual time until everything except the control plane has stopped.
func (r *Environment) startTime(ctx context.Context) error {
	if r.options.VirtualTime == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// A restarted control plane is another process.
		r.options.VirtualTime.Run(ctx, func() bool { return virtualtime.Programs(r.cluster.PID())() })
	}()
	r.onClose(func() error {
		cancel()
		<-ended
		return nil
	})
	return nil
}

// programClock returns the clock of the programs of the payload.
func (r *Environment) programClock() clock.WithTicker {
	if r.options.VirtualTime != nil {
		return r.options.VirtualTime
	}
	return shownTime{shown: r.options.Clock}
}

// shownTime shows the time of another clock, and measures durations with the real clock. All programs on a machine
// show the same time. The timers of a node's programs follow the real clock, because the control plane does the same
// and expects heartbeats.
type shownTime struct {
	clock.RealClock
	shown clock.PassiveClock
}

// Now implements clock.PassiveClock.
func (c shownTime) Now() time.Time { return c.shown.Now() }

// Since implements clock.PassiveClock.
func (c shownTime) Since(t time.Time) time.Duration { return c.shown.Since(t) }

// FastClock returns a clock for hosts and operator that runs until stop, about ten times as fast as the real clock,
// to shorten waits for limits of minutes. Each tick of the real clock advances the fast clock. In a busy process the
// ticks are late and the fast clock slows down, so that no limit passes because of the load.
func FastClock() (fast *clocktesting.FakeClock, stop func()) {
	const tick, step = 10 * time.Millisecond, 100 * time.Millisecond
	fast = clocktesting.NewFakeClock(time.Now())
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fast.Step(step)
			case <-end:
				return
			}
		}
	}()
	return fast, func() {
		close(end)
		<-ended
	}
}
