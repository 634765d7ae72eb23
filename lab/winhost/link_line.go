package winhost

import (
	"net"
	"os"
	"sync"
	"time"
)

// line is one direction of a connection: a queue for bytes until their arrival.
type line struct {
	link *Link

	mu      sync.Mutex
	parcels []packet
	bytes   int           // in parcels
	idle    time.Time     // when the last byte so far has passed the bottleneck
	closed  bool          // put returns an error
	err     error         // returned at once by everything
	changed chan struct{} // closed and replaced at each change
}

// packet is data that arrives together; with err it is the end.
type packet struct {
	data []byte
	due  time.Time
	err  error
}

// window is the maximum number of bytes in transit in one direction, like a TCP window.
const window = 4 << 20

func newLine(link *Link) *line { return &line{link: link, changed: make(chan struct{})} }

func (l *line) notifyWaiters() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// writeBytes sends bytes. It waits while the window is full.
func (l *line) writeBytes(b []byte, cancel <-chan struct{}) error {
	for {
		l.mu.Lock()
		switch {
		case l.err != nil:
			defer l.mu.Unlock()
			return l.err
		case l.closed:
			defer l.mu.Unlock()
			return net.ErrClosed
		case l.bytes < window:
			defer l.mu.Unlock()
			l.appendPacket(append([]byte(nil), b...), nil)
			return nil
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-cancel:
			return os.ErrDeadlineExceeded
		}
	}
}

func (l *line) appendPacket(data []byte, err error) {
	now, properties := l.link.clock.Now(), l.link.Properties()
	if l.idle.Before(now) {
		l.idle = now
	}
	if properties.BytesPerSecond > 0 {
		l.idle = l.idle.Add(time.Duration(float64(len(data)) / float64(properties.BytesPerSecond) * float64(time.Second)))
	}
	due := l.idle.Add(properties.RoundTrip / 2)
	if n := len(l.parcels); n > 0 && due.Before(l.parcels[n-1].due) { // the link became shorter: parcels keep their order
		due = l.parcels[n-1].due
	}
	l.parcels = append(l.parcels, packet{data: data, due: due, err: err})
	l.bytes += len(data)
	l.notifyWaiters()
}

// closeWithError lets the other side read err after all bytes that were put.
func (l *line) closeWithError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && l.err == nil {
		l.closed = true
		l.appendPacket(nil, err)
	}
}

// abortWithError makes all operations on the line fail at once.
func (l *line) abortWithError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err, l.parcels, l.bytes = err, nil, 0
		l.notifyWaiters()
	}
}

// readBytes waits for arrived bytes and returns them.
func (l *line) readBytes(b []byte, cancel <-chan struct{}) (int, error) {
	for {
		select {
		case <-cancel:
			return 0, os.ErrDeadlineExceeded
		default:
		}
		n, wait, changed, err := l.pollBytes(b)
		if n > 0 || err != nil {
			return n, err
		}
		if err := l.awaitChange(wait, changed, cancel); err != nil {
			return 0, err
		}
	}
}

// pollBytes returns arrived bytes, or else the time until the first parcel arrives (0: there is none).
func (l *line) pollBytes(b []byte) (n int, wait time.Duration, changed <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.link.clock.Now()
	for len(l.parcels) > 0 && n < len(b) {
		first := &l.parcels[0]
		if first.due.After(now) {
			wait = first.due.Sub(now)
			break
		}
		if first.err != nil {
			if n == 0 {
				err = first.err
			}
			break
		}
		copied := copy(b[n:], first.data)
		n += copied
		if first.data = first.data[copied:]; len(first.data) == 0 {
			l.parcels = l.parcels[1:]
		}
	}
	if n > 0 {
		l.bytes -= n
		l.notifyWaiters()
	}
	if n == 0 && err == nil {
		err = l.err
	}
	return n, wait, l.changed, err
}

func (l *line) awaitChange(d time.Duration, changed, cancel <-chan struct{}) error {
	var due <-chan time.Time
	if d > 0 {
		timer := l.link.clock.NewTimer(d)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-changed:
	case <-due:
	case <-cancel:
		return os.ErrDeadlineExceeded
	}
	return nil
}
