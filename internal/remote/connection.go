package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"k8s.io/utils/clock"
)

// Connection is an authenticated SSH connection to a host. Its methods are safe for concurrent use.
type Connection struct {
	target  Target
	hostKey HostKey
	limits  Limits
	clock   clock.WithTicker
	rand    io.Reader
	conn    *monitoredConn
	client  *ssh.Client

	done       chan struct{}
	background sync.WaitGroup

	mu    sync.Mutex
	cause error // the reason for the end of the connection

	files files
}

func newConnection(d *Dialer, target Target, conn *monitoredConn, client *ssh.Client, hostKey HostKey) *Connection {
	c := &Connection{
		target: target, hostKey: hostKey, limits: d.Limits, clock: d.Clock, rand: d.Rand,
		conn: conn, client: client, done: make(chan struct{}),
	}
	c.files.init()
	c.background.Go(c.awaitEnd)
	c.background.Go(c.keepAlive)
	return c
}

// HostKey returns the key presented by the host.
func (c *Connection) HostKey() HostKey { return c.hostKey }

// Address returns the IP address of the remote end.
func (c *Connection) Address() string {
	address := c.client.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// Done returns a channel that is closed when the connection has ended.
func (c *Connection) Done() <-chan struct{} { return c.done }

// Err returns nil while the connection is open, ErrClosed after Close, and an *Error after a connection loss.
func (c *Connection) Err() error {
	select {
	case <-c.done:
	default:
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// Close ends the connection with all of its sessions and waits for its goroutines. Repeated calls are allowed.
func (c *Connection) Close() {
	c.closeWithCause(ErrClosed)
	<-c.done
	c.background.Wait()
}

// closeWithCause ends the connection for the given reason. All pending operations on the host return.
func (c *Connection) closeWithCause(cause error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
	}
	c.mu.Unlock()
	_ = c.conn.Close()
}

// awaitEnd waits for the end of the connection and records the cause.
func (c *Connection) awaitEnd() {
	err := c.client.Wait()
	// The remote end may have ended SSH on a TCP connection that is still open.
	_ = c.conn.Close()
	c.mu.Lock()
	if c.cause == nil {
		c.cause = c.lostError(err)
	}
	c.mu.Unlock()
	close(c.done)
}

// lostError returns the error for a connection that the operator did not close.
func (c *Connection) lostError(err error) *Error {
	message := "the SSH connection was lost"
	if err != nil && !errors.Is(err, io.EOF) {
		message += fmt.Sprintf(" (%s)", sanitizeText(causeOf(err)))
	}
	return &Error{Reason: ReasonConnectionLost, Host: c.target.Address, Message: message, Err: err,
		Next: "the operator retries; check that the host runs and that the network is stable"}
}

// keepAlive sends SSH keepalives to the host at an interval and ends the connection after too many missed answers.
func (c *Connection) keepAlive() {
	timer := c.clock.NewTimer(c.limits.KeepaliveInterval)
	defer timer.Stop()
	answered := make(chan struct{}, 1)
	waiting, missed, seen := false, 0, c.conn.receivedBytes()
	for {
		select {
		case <-c.done:
			return
		case <-answered:
			waiting, missed = false, 0
		case <-timer.C():
			now := c.conn.receivedBytes()
			if waiting && now == seen {
				missed++
			} else {
				missed = 0
			}
			if missed >= c.limits.MaxKeepaliveMisses {
				timeout := &TimeoutError{Waiting: "a response to SSH keepalives", Limit: c.limits.KeepaliveInterval * time.Duration(missed)}
				c.closeWithCause(c.lostError(timeout))
				return
			}
			if seen = now; !waiting {
				waiting = true
				c.background.Go(func() {
					if c.sendKeepalive() == nil {
						answered <- struct{}{}
					}
				})
			}
			timer.Reset(c.limits.KeepaliveInterval)
		}
	}
}

// sendKeepalive waits for any answer of the SSH server. Servers reject this request, but a rejection counts as an
// answer.
func (c *Connection) sendKeepalive() error {
	_, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil)
	return err
}

// runWork runs work, which waits for the host, within the limits of w. When a limit passes, the host counts as hung and
// the connection is closed. When ctx ends, runWork calls soft (if any) to stop the work; if the work does not stop
// soon, the connection is closed. In either case the work has ended when runWork returns. A panic of work is raised in
// the caller, which may recover from it.
func (c *Connection) runWork(ctx context.Context, w *watch, soft func(), work func() error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	var workErr error
	var panicked *Panic
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				panicked = &Panic{p, debug.Stack()}
			}
		}()
		workErr = work()
	}()
	err := w.waitFor(ctx, done)
	if err == nil {
		if panicked != nil {
			panic(panicked)
		}
		return workErr
	}
	if ctx.Err() != nil {
		if soft != nil {
			soft()
		}
		// Even after the end of ctx, the work has a moment to stop.
		end := newWatch(c.clock, "the canceled work to end", c.limits.EndTimeout)
		if end.waitFor(context.WithoutCancel(ctx), done) == nil {
			return err
		}
		c.closeWithCause(ErrClosed)
		<-done
		return err
	}
	c.closeWithCause(c.lostError(err))
	<-done
	return err
}

// Panic is the panic value in a caller of work that panicked in another goroutine.
type Panic struct {
	Value any
	Stack []byte // stack of the goroutine that panicked
}

// callerError maps an error of work to the error returned to the caller. A context's cause is returned unchanged. If
// the connection was lost, callerError returns the loss. All other errors, including timeouts, are passed to explain.
func (c *Connection) callerError(ctx context.Context, err error, explain func(error) error) error {
	var timeout *TimeoutError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &timeout):
		return explain(err)
	}
	if lost := c.checkAlive(ctx); lost != nil {
		return lost
	}
	return explain(err)
}

// checkAlive verifies that the connection still works and returns the reason if it does not.
func (c *Connection) checkAlive(ctx context.Context) error {
	w := newWatch(c.clock, "a response of the SSH server", c.limits.ExecStartTimeout)
	err := c.runWork(ctx, w, nil, c.sendKeepalive)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.closeWithCause(c.lostError(err))
	<-c.done
	return c.Err()
}
