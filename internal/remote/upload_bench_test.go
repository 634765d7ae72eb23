package remote_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// delayedConn is a connection that delays writes. It does not limit the data in flight, so that the SSH channel's
// window is the measured limit.
type delayedConn struct {
	net.Conn
	delay time.Duration
	queue chan delayedWrite
	done  chan struct{}
	once  sync.Once
}

type delayedWrite struct {
	due  time.Time
	data []byte
}

func newDelayedConn(conn net.Conn, delay time.Duration) *delayedConn {
	c := &delayedConn{Conn: conn, delay: delay, queue: make(chan delayedWrite, 1<<16), done: make(chan struct{})}
	go c.deliverWrites()
	return c
}

func (c *delayedConn) deliverWrites() {
	for {
		select {
		case <-c.done:
			return
		case w := <-c.queue:
			time.Sleep(time.Until(w.due))
			if _, err := c.Conn.Write(w.data); err != nil {
				return
			}
		}
	}
}

func (c *delayedConn) Write(p []byte) (int, error) {
	select {
	case c.queue <- delayedWrite{time.Now().Add(c.delay), bytes.Clone(p)}:
		return len(p), nil
	case <-c.done:
		return 0, net.ErrClosed
	}
}

func (c *delayedConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}

// BenchmarkUpload sends 32 MiB over links with different round trips.
func BenchmarkUpload(b *testing.B) {
	data := testContent(32 << 20)
	for _, trip := range []time.Duration{0, 20 * time.Millisecond, 50 * time.Millisecond} {
		b.Run(fmt.Sprintf("round trip of %s", trip), func(b *testing.B) {
			key := newKey(b)
			s := newServer(b, key)
			d := &remote.Dialer{}
			if trip > 0 {
				s.wrap = func(conn net.Conn) net.Conn { return newDelayedConn(conn, trip/2) }
				d.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
					if err != nil {
						return nil, err
					}
					return newDelayedConn(conn, trip/2), nil
				}
			}
			c, err := d.Connect(b.Context(), s.newTarget(key))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.SetBytes(int64(len(data)))
			for i := 0; b.Loop(); i++ {
				if err := c.Upload(b.Context(), fmt.Sprintf(`C:\k\file-%d`, i), int64(len(data)),
					bytes.NewReader(data), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
