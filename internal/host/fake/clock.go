package fake

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// SetClockOffset sets the offset of the machine's clock from the true time. A positive offset is ahead.
func (m *Machine) SetClockOffset(offset time.Duration) { m.clockOffset.Store(int64(offset)) }

// Clock returns a clock with the machine's offset.
func (m *Machine) Clock(actual clock.WithTicker) clock.WithTicker {
	return machineClock{actual, &m.clockOffset}
}

// machineClock measures durations like the underlying clock and returns times with an offset.
type machineClock struct {
	clock.WithTicker
	offset *atomic.Int64
}

// Now implements clock.PassiveClock.
func (c machineClock) Now() time.Time { return c.WithTicker.Now().Add(time.Duration(c.offset.Load())) }

// Since implements clock.PassiveClock.
func (c machineClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
