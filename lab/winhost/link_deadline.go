package winhost

import (
	"sync"
	"time"
)

// deadline is a point in time that may be moved while goroutines wait for it.
type deadline struct {
	mu      sync.Mutex
	timer   *time.Timer
	channel chan struct{}
}

func newDeadline() *deadline { return &deadline{channel: make(chan struct{})} }

// expiredChannel returns a channel that is closed when the deadline has passed. If the deadline was moved in time,
// the new time counts.
func (d *deadline) expiredChannel() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.channel
}

func (d *deadline) setTime(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.channel // it fires just now
	}
	d.timer = nil
	select {
	case <-d.channel:
		d.channel = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	channel := d.channel
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(channel) })
		return
	}
	close(channel)
}
