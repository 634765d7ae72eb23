package remote

import (
	"bytes"
	"net"
	"sync"
)

// greetingLimit is how much of what a server says first is kept to tell SSH from other protocols.
const greetingLimit = 4096

// Traffic counts what goes to hosts. Many goroutines call it.
type Traffic interface {
	// Connected counts a connection that is logged in.
	Connected()
	// Opened counts a session: a run of a program, or file transfers.
	Opened()
	// Sent counts bytes as they are on the wire.
	Sent(bytes int)
}

type uncounted struct{}

func (uncounted) Connected() {}
func (uncounted) Opened()    {}
func (uncounted) Sent(int)   {}

// monitoredConn counts what is sent and received, and keeps the beginning until the handshake is over.
type monitoredConn struct {
	net.Conn
	traffic Traffic

	mu       sync.Mutex
	received int64
	greeting []byte
	settled  bool
}

func (c *monitoredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received += int64(n)
	if room := greetingLimit - len(c.greeting); !c.settled && room > 0 {
		c.greeting = append(c.greeting, p[:min(n, room)]...)
	}
	return n, err
}

func (c *monitoredConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.traffic.Sent(n)
	return n, err
}

// count returns the number of bytes received so far.
func (c *monitoredConn) count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received
}

// settle ends the keeping of the greeting.
func (c *monitoredConn) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled, c.greeting = true, nil
}

// greetingKind is what a server's first bytes look like.
type greetingKind int

const (
	greetingNone  greetingKind = iota // it said nothing
	greetingSSH                       // an SSH 2 identification, perhaps after other lines (RFC 4253, 4.2)
	greetingOld                       // SSH 1
	greetingOther                     // something else
)

func (c *monitoredConn) greetingKind() greetingKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return kindOfGreeting(c.greeting)
}

func kindOfGreeting(greeting []byte) greetingKind {
	if len(greeting) == 0 {
		return greetingNone
	}
	for line := range bytes.SplitSeq(greeting, []byte("\n")) {
		switch {
		case bytes.HasPrefix(line, []byte("SSH-2.")), bytes.HasPrefix(line, []byte("SSH-1.99-")):
			return greetingSSH
		case bytes.HasPrefix(line, []byte("SSH-1.")):
			return greetingOld
		}
	}
	return greetingOther
}
