package winhost

import (
	"net"
	"time"
)

// linkConn is the near end of a connection over a Link.
type linkConn struct {
	net.Conn
	in, out                     *line
	readDeadline, writeDeadline *deadline
}

// receive puts received bytes on the incoming line.
func (c *linkConn) receive() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.Conn.Read(buffer)
		if n > 0 && c.in.put(buffer[:n], nil) != nil {
			return
		}
		if err != nil {
			c.in.end(err)
			return
		}
	}
}

// send forwards bytes from the end of the outgoing line.
func (c *linkConn) send() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.out.take(buffer, nil)
		if err == nil {
			_, err = c.Conn.Write(buffer[:n])
		}
		if err != nil {
			c.out.abort(err)
			_ = c.Conn.Close() // both directions have ended
			return
		}
	}
}

// Read implements net.Conn.
func (c *linkConn) Read(b []byte) (int, error) { return c.in.take(b, c.readDeadline.passed()) }

// Write implements net.Conn. It returns when the bytes are on the line.
func (c *linkConn) Write(b []byte) (int, error) {
	if err := c.out.put(b, c.writeDeadline.passed()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close implements net.Conn.
func (c *linkConn) Close() error {
	c.in.abort(net.ErrClosed)
	c.out.end(net.ErrClosed)
	return nil
}

// SetDeadline implements net.Conn.
func (c *linkConn) SetDeadline(t time.Time) error {
	c.readDeadline.set(t)
	c.writeDeadline.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *linkConn) SetReadDeadline(t time.Time) error { c.readDeadline.set(t); return nil }

// SetWriteDeadline implements net.Conn.
func (c *linkConn) SetWriteDeadline(t time.Time) error { c.writeDeadline.set(t); return nil }
