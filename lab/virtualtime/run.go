package virtualtime

import (
	"context"
	"time"
)

// The clock leaps after this number of consecutive checks without work. A wrong leap adds at most its own
// length to a measurement, so checks before a long leap are further apart: by this fraction of the leap,
// between the shortest and the longest pause.
const (
	looks         = 4
	part          = 400
	shortestPause = 500 * time.Microsecond
	longestPause  = 10 * time.Millisecond
)

// Run lets time pass until ctx is done: while busy returns false, the clock advances from timer to timer. See
// Programs for an implementation of busy.
func (c *Clock) Run(ctx context.Context, busy func() bool) {
	for quiet := 0; ; {
		next, waited := c.next()
		timer := time.NewTimer(pause(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		switch quiet++; {
		case busy():
			quiet = 0
		case waited && quiet >= looks:
			c.leap(next)
			quiet = 0
		}
	}
}

// pause returns the interval between two checks before a leap.
func pause(leap time.Duration) time.Duration { return min(max(leap/part, shortestPause), longestPause) }
