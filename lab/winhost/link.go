package winhost

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// LinkProperties are the latency and the bandwidth of a line.
type LinkProperties struct {
	// RoundTrip is the round-trip time. Each direction takes half of it.
	RoundTrip time.Duration
	// BytesPerSecond is the bandwidth of each direction; 0 means no limit.
	BytesPerSecond int64
}

// Link is a line with latency or limited bandwidth. Bytes travel behind each other, so sending ahead costs the delay
// once and not per write. The properties may change while connections are open.
type Link struct {
	clock      clock.Clock
	properties atomic.Pointer[LinkProperties]
}

// NewLink creates a link. The clock measures the delays.
func NewLink(clock clock.Clock, properties LinkProperties) *Link {
	link := &Link{clock: clock}
	link.Set(properties)
	return link
}

// Set changes the properties for all bytes sent from now on.
func (l *Link) Set(properties LinkProperties) { l.properties.Store(&properties) }

// Properties returns the current properties.
func (l *Link) Properties() LinkProperties { return *l.properties.Load() }

// Conn returns the near end of a connection over the link. Written and received bytes are each delayed by half a
// round trip. Close still delivers written bytes.
func (l *Link) Conn(conn net.Conn) net.Conn {
	c := &linkConn{
		Conn: conn, in: newLine(l), out: newLine(l), readDeadline: newDeadline(), writeDeadline: newDeadline(),
	}
	go c.receiveBytes()
	go c.sendBytes()
	return c
}

// Listener returns connections over the link, each one round trip after it was accepted, like a TCP handshake.
func (l *Link) Listener(listener net.Listener) net.Listener {
	delayed := &linkListener{Listener: listener, link: l, ready: make(chan net.Conn), closed: make(chan struct{})}
	go delayed.acceptConnections()
	return delayed
}

// Dialer dials over the link. Use either Dialer or Listener for a connection, not both.
func (l *Link) Dialer(dial func(ctx context.Context, network, address string) (net.Conn, error),
) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		select {
		case <-l.clock.After(l.Properties().RoundTrip):
			return l.Conn(conn), nil
		case <-ctx.Done():
			_ = conn.Close() // the caller has canceled
			return nil, context.Cause(ctx)
		}
	}
}

type linkListener struct {
	net.Listener
	link   *Link
	ready  chan net.Conn
	closed chan struct{}
	once   sync.Once
	err    error // why no more connections are accepted; set before closed is closed
}

func (l *linkListener) acceptConnections() {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			l.endListener(err)
			return
		}
		go l.deliverConnection(conn, l.link.clock.After(l.link.Properties().RoundTrip))
	}
}

func (l *linkListener) deliverConnection(conn net.Conn, arrived <-chan time.Time) {
	select {
	case <-arrived:
	case <-l.closed:
	}
	select {
	case l.ready <- l.link.Conn(conn):
	case <-l.closed:
		_ = conn.Close() // the listener is closed
	}
}

func (l *linkListener) endListener(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.closed)
	})
}

// Accept implements net.Listener.
func (l *linkListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.ready:
		return conn, nil
	case <-l.closed:
		return nil, l.err
	}
}

// Close implements net.Listener.
func (l *linkListener) Close() error {
	l.endListener(net.ErrClosed)
	return l.Listener.Close()
}
