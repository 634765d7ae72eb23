package virtualtime

import (
	"context"
	"time"
)

// The clock leaps when so many looks in a row have found nobody at work. A leap in error adds to what is measured at
// most its own length, so the looks before a long one are further apart: by this part of it, between the shortest and
// the longest pause.
const (
	looks         = 4
	part          = 400
	shortestPause = 500 * time.Microsecond
	longestPause  = 10 * time.Millisecond
)

// Run lets the time pass until ctx is done: while busy reports that nobody works, the clock goes from timer to timer.
// See Programs for what busy may ask.
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

// pause returns the time between two looks before a leap.
func pause(leap time.Duration) time.Duration { return min(max(leap/part, shortestPause), longestPause) }
