package winhost

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// traffic counts the bytes on the wire, encrypted and with the overhead of SSH.
type traffic struct {
	received, sent atomic.Int64

	mu                             sync.Mutex
	recordedReceived, recordedSent int64 // recorded in the journal
}

// Traffic returns the number of received and sent bytes on all connections so far. The journal records them when a
// command, an SFTP session or a connection ends.
func (h *Host) Traffic() (received, sent int64) {
	return h.traffic.received.Load(), h.traffic.sent.Load()
}

// recordTraffic records the traffic that is not in the journal yet.
func (h *Host) recordTraffic() {
	t := &h.traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	received, sent := h.Traffic()
	if n := received - t.recordedReceived; n > 0 {
		h.machine.Journal().Append(fake.KindReceived, "SSH", n)
	}
	if n := sent - t.recordedSent; n > 0 {
		h.machine.Journal().Append(fake.KindSent, "SSH", n)
	}
	t.recordedReceived, t.recordedSent = received, sent
}

// wrapConn returns the host's end of a connection, over the slow line of a fault if active, with traffic counters.
func (h *Host) wrapConn(conn net.Conn) *wireConn {
	if h.faults.findActive(SlowLink) != nil {
		conn = h.slow.Conn(conn)
	}
	c := &wireConn{Conn: conn, host: h}
	c.open, c.end = context.WithCancel(context.Background())
	return c
}

// wireConn is the host's end of a connection. It counts bytes, and can hang or be cut at a byte.
type wireConn struct {
	net.Conn
	host     *Host
	open     context.Context // done when the connection is closed
	end      context.CancelFunc
	loggedIn atomic.Bool
}

// Close implements net.Conn.
func (c *wireConn) Close() error {
	c.end()
	return c.Conn.Close()
}

// holdDuringHang waits as long as the host hangs.
func (c *wireConn) holdDuringHang() error {
	if c.loggedIn.Load() && c.host.faults.holdWhileActive(c.open, HangAfterAuth) != nil {
		return net.ErrClosed
	}
	return nil
}

// Read implements net.Conn.
func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if hung := c.holdDuringHang(); hung != nil {
		return 0, hung
	}
	if wanted := n; n > 0 {
		if n = c.host.faults.allowBytes(wanted); n < wanted {
			_ = c.Close() // intended
			err = net.ErrClosed
		}
		c.host.traffic.received.Add(int64(n))
	}
	return n, err
}

// Write implements net.Conn.
func (c *wireConn) Write(b []byte) (int, error) {
	if err := c.holdDuringHang(); err != nil {
		return 0, err
	}
	allowed := c.host.faults.allowBytes(len(b))
	c.host.traffic.sent.Add(int64(allowed)) // counted before sending: the receiver may end the connection, which sums up the traffic
	n, err := c.Conn.Write(b[:allowed])
	c.host.traffic.sent.Add(int64(n - allowed))
	if allowed < len(b) {
		_ = c.Close() // intended
		err = net.ErrClosed
	}
	return n, err
}
