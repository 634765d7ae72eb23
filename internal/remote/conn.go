package remote

import (
	"bytes"
	"net"
	"sync"
)

// greetingLimit is the maximum number of greeting bytes kept to distinguish SSH from other protocols.
const greetingLimit = 4096

// Traffic counts connections, sessions and bytes sent to hosts. Implementations must be safe for concurrent use.
type Traffic interface {
	// Connected counts an authenticated connection.
	Connected()
	// Opened counts a session: a program run or a file transfer session.
	Opened()
	// Sent counts bytes on the wire.
	Sent(bytes int)
}

type uncounted struct{}

func (uncounted) Connected() {}
func (uncounted) Opened()    {}
func (uncounted) Sent(int)   {}

// monitoredConn counts sent and received bytes, and keeps the first received bytes until the handshake completes.
type monitoredConn struct {
	net.Conn
	traffic Traffic

	mu                sync.Mutex
	received          int64
	greeting          []byte
	greetingDiscarded bool
}

func (c *monitoredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received += int64(n)
	if room := greetingLimit - len(c.greeting); !c.greetingDiscarded && room > 0 {
		c.greeting = append(c.greeting, p[:min(n, room)]...)
	}
	return n, err
}

func (c *monitoredConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.traffic.Sent(n)
	return n, err
}

// receivedBytes returns the number of received bytes.
func (c *monitoredConn) receivedBytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received
}

// discardGreeting discards the greeting and stops recording.
func (c *monitoredConn) discardGreeting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.greetingDiscarded, c.greeting = true, nil
}

// greetingKind classifies the first bytes from a server.
type greetingKind int

const (
	greetingNone  greetingKind = iota // nothing received
	greetingSSH                       // an SSH 2 identification, possibly after other lines (RFC 4253, 4.2)
	greetingOld                       // SSH 1
	greetingOther                     // another protocol
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
