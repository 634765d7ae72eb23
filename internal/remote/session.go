package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// session is one SSH session.
type session struct {
	*ssh.Session
	stdout io.Reader
	stderr *tail // the end of its standard error
	exit   error // how its program ended, once the session is finished
}

// open opens a session channel.
func (c *Connection) open(ctx context.Context) (*session, error) {
	var s *ssh.Session
	w := newWatch(c.clock, "the SSH server to open a session", c.limits.ExecStart)
	err := c.do(ctx, w, nil, func() (err error) {
		s, err = c.client.NewSession()
		return err
	})
	if err != nil {
		if s != nil {
			_ = s.Close()
		}
		return nil, c.verdict(ctx, err, c.refused)
	}
	c.conn.traffic.Opened()
	out := &session{Session: s, stderr: &tail{}}
	s.Stderr = out.stderr
	stdout, err := s.StdoutPipe()
	if err != nil {
		_ = s.Close()
		return nil, c.refused(err)
	}
	out.stdout = &serialReader{reader: stdout}
	return out, nil
}

// serialReader lets the reader of a session's output and finish read at the same time. At its end, an SSH channel wakes one
// reader only, and another would wait forever, also after the end of the connection.
type serialReader struct {
	mu     sync.Mutex
	reader io.Reader
}

func (r *serialReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reader.Read(p)
}

// start has the SSH server start what request asks for.
func (c *Connection) start(ctx context.Context, s *session, request func() error) error {
	w := newWatch(c.clock, "the SSH server to start a program", c.limits.ExecStart)
	err := c.do(ctx, w, func() { _ = s.Close() }, request)
	if err != nil {
		c.finish(ctx, s, nil)
	}
	return c.verdict(ctx, err, c.refused)
}

// refused returns the error for a session that the SSH server does not give.
func (c *Connection) refused(err error) error {
	e := &Error{Reason: ReasonSessionRejected, Host: c.target.Address, Err: err,
		Message: fmt.Sprintf("the SSH server does not start a session (%s)", sanitize(err.Error())),
		Next:    "see the log of the service sshd on the host, and the settings MaxSessions, ForceCommand and DefaultShell"}
	if timeout := (*TimeoutError)(nil); errors.As(err, &timeout) {
		e.Reason = ReasonConnectionTimedOut
		e.Message = fmt.Sprintf("the host does not answer on an open connection (%v)", timeout)
		e.Next = "check that the host is not overloaded"
	}
	return e
}

// finish waits until a session has ended, and closes it when that takes too long; a nil watch closes it at once. A
// session that does not even end then takes the connection with it.
func (c *Connection) finish(ctx context.Context, s *session, w *watch) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, s.stdout)
		s.exit = s.Wait()
	}()
	ended := w != nil && w.until(ctx, done) == nil
	_ = s.Close()
	if ended {
		return
	}
	end := newWatch(c.clock, "the SSH server to close a session", c.limits.End)
	if err := end.until(context.WithoutCancel(ctx), done); err != nil {
		c.abort(c.lost(err))
		<-done
	}
}

// exitText says how a program ended.
func exitText(exit error) string {
	var status *ssh.ExitError
	if errors.As(exit, &status) {
		return fmt.Sprintf("exit code %d", status.ExitStatus())
	}
	if exit == nil {
		return "exit code 0"
	}
	return "no exit code"
}
