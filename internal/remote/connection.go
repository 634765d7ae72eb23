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

// Connection is one SSH connection to a host, logged in. Its methods may be called at the same time.
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
	cause error // why the connection ended

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

// HostKey is the key that the host presented.
func (c *Connection) HostKey() HostKey { return c.hostKey }

// Address returns the IP address of the other end.
func (c *Connection) Address() string {
	address := c.client.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// Done is closed when the connection has ended.
func (c *Connection) Done() <-chan struct{} { return c.done }

// Err is nil while the connection lives, ErrClosed after Close, and an *Error when it was lost.
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

// Close ends the connection and everything that runs on it, and waits for its goroutines. It may be called again.
func (c *Connection) Close() {
	c.abort(ErrClosed)
	<-c.done
	c.background.Wait()
}

// abort ends the connection for the given reason. Everything that waits for the host returns.
func (c *Connection) abort(cause error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
	}
	c.mu.Unlock()
	_ = c.conn.Close()
}

// awaitEnd notes the end of the connection.
func (c *Connection) awaitEnd() {
	err := c.client.Wait()
	// The other end may have said goodbye on a connection that is open still.
	_ = c.conn.Close()
	c.mu.Lock()
	if c.cause == nil {
		c.cause = c.lost(err)
	}
	c.mu.Unlock()
	close(c.done)
}

// lost returns the error for a connection that ended by itself.
func (c *Connection) lost(err error) *Error {
	message := "the SSH connection was lost"
	if err != nil && !errors.Is(err, io.EOF) {
		message += fmt.Sprintf(" (%s)", sanitize(causeOf(err)))
	}
	return &Error{Reason: ReasonConnectionLost, Host: c.target.Address, Message: message, Err: err,
		Next: "the operator retries; check that the host runs and its network is stable"}
}

// keepAlive asks the host regularly for a sign of life and ends the connection when none comes.
func (c *Connection) keepAlive() {
	timer := c.clock.NewTimer(c.limits.Keepalive)
	defer timer.Stop()
	answered := make(chan struct{}, 1)
	waiting, missed, seen := false, 0, c.conn.count()
	for {
		select {
		case <-c.done:
			return
		case <-answered:
			waiting, missed = false, 0
		case <-timer.C():
			now := c.conn.count()
			if waiting && now == seen {
				missed++
			} else {
				missed = 0
			}
			if missed >= c.limits.KeepaliveMisses {
				timeout := &TimeoutError{Waiting: "an answer to SSH keepalives", Limit: c.limits.Keepalive * time.Duration(missed)}
				c.abort(c.lost(timeout))
				return
			}
			if seen = now; !waiting {
				waiting = true
				c.background.Go(func() {
					if c.ping() == nil {
						answered <- struct{}{}
					}
				})
			}
			timer.Reset(c.limits.Keepalive)
		}
	}
}

// ping waits for any answer of the SSH server; servers refuse this request, which is an answer too.
func (c *Connection) ping() error {
	_, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil)
	return err
}

// do runs work, which waits for the host, and limits it: when w's limit passes, the host counts as hung and the
// connection is closed. When ctx ends, soft (if any) asks the work to end; if that does not help soon, the connection
// is closed. Either way the work has ended when do returns. A panic of work is one of the caller, who may recover from it.
func (c *Connection) do(ctx context.Context, w *watch, soft func(), work func() error) error {
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
	err := w.until(ctx, done)
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
		// The work gets a request to end and a moment for it, whatever ctx says.
		end := newWatch(c.clock, "the canceled work to end", c.limits.End)
		if end.until(context.WithoutCancel(ctx), done) == nil {
			return err
		}
		c.abort(ErrClosed)
		<-done
		return err
	}
	c.abort(c.lost(err))
	<-done
	return err
}

// Panic is what a caller panics with when its work has panicked in another goroutine.
type Panic struct {
	Value any
	Stack []byte // of that goroutine
}

// verdict turns an error of work into what the caller gets: the context's cause and time-outs as they are, the loss of
// the connection if that is behind it, and otherwise what explain makes of it.
func (c *Connection) verdict(ctx context.Context, err error, explain func(error) error) error {
	var timeout *TimeoutError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &timeout):
		return explain(err)
	}
	if lost := c.check(ctx); lost != nil {
		return lost
	}
	return explain(err)
}

// check asks whether the connection still works, and returns why not.
func (c *Connection) check(ctx context.Context) error {
	w := newWatch(c.clock, "an answer of the SSH server", c.limits.ExecStart)
	err := c.do(ctx, w, nil, c.ping)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.abort(c.lost(err))
	<-c.done
	return c.Err()
}
