package virtualtime

import (
	"context"
	"time"
)

// The clock leaps after this number of consecutive checks without work. A wrong leap adds at most its own
// length to a measurement, so checks before a long leap are further apart: by this fraction of the leap,
// between the shortest and the longest pause.
const (
	idleChecks   = 4
	pauseDivisor = 400
	minPause     = 500 * time.Microsecond
	maxPause     = 10 * time.Millisecond
)

// Run lets time pass until ctx is done: while busy returns false, the clock advances from timer to timer. See
// Programs for an implementation of busy.
func (c *Clock) Run(ctx context.Context, busy func() bool) {
	for quiet := 0; ; {
		next, waited := c.timeToNext()
		timer := time.NewTimer(pauseBeforeLeap(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		switch quiet++; {
		case busy():
			quiet = 0
		case waited && quiet >= idleChecks:
			c.leapForward(next)
			quiet = 0
		}
	}
}

// pauseBeforeLeap returns the interval between two checks before a leap.
func pauseBeforeLeap(leap time.Duration) time.Duration {
	return min(max(leap/pauseDivisor, minPause), maxPause)
}
