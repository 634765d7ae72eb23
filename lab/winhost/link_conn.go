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

// receiveBytes puts received bytes on the incoming line.
func (c *linkConn) receiveBytes() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.Conn.Read(buffer)
		if n > 0 && c.in.writeBytes(buffer[:n], nil) != nil {
			return
		}
		if err != nil {
			c.in.closeWithError(err)
			return
		}
	}
}

// sendBytes forwards bytes from the end of the outgoing line.
func (c *linkConn) sendBytes() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.out.readBytes(buffer, nil)
		if err == nil {
			_, err = c.Conn.Write(buffer[:n])
		}
		if err != nil {
			c.out.abortWithError(err)
			_ = c.Conn.Close() // both directions have ended
			return
		}
	}
}

// Read implements net.Conn.
func (c *linkConn) Read(b []byte) (int, error) {
	return c.in.readBytes(b, c.readDeadline.expiredChannel())
}

// Write implements net.Conn. It returns when the bytes are on the line.
func (c *linkConn) Write(b []byte) (int, error) {
	if err := c.out.writeBytes(b, c.writeDeadline.expiredChannel()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close implements net.Conn.
func (c *linkConn) Close() error {
	c.in.abortWithError(net.ErrClosed)
	c.out.closeWithError(net.ErrClosed)
	return nil
}

// SetDeadline implements net.Conn.
func (c *linkConn) SetDeadline(t time.Time) error {
	c.readDeadline.setTime(t)
	c.writeDeadline.setTime(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *linkConn) SetReadDeadline(t time.Time) error { c.readDeadline.setTime(t); return nil }

// SetWriteDeadline implements net.Conn.
func (c *linkConn) SetWriteDeadline(t time.Time) error { c.writeDeadline.setTime(t); return nil }
