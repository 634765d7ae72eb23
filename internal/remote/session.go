package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

type session struct {
	*ssh.Session
	stdout io.Reader
	stderr *tail // the end of the standard error
	exit   error // the exit of the program, set by endSession
}

func (c *Connection) openSession(ctx context.Context) (*session, error) {
	var s *ssh.Session
	w := newWatch(c.clock, "the SSH server to open a session", c.limits.ExecStartTimeout)
	err := c.runWork(ctx, w, nil, func() (err error) {
		s, err = c.client.NewSession()
		return err
	})
	if err != nil {
		if s != nil {
			_ = s.Close()
		}
		return nil, c.callerError(ctx, err, c.sessionRefusedError)
	}
	c.conn.traffic.Opened()
	out := &session{Session: s, stderr: &tail{}}
	s.Stderr = out.stderr
	stdout, err := s.StdoutPipe()
	if err != nil {
		_ = s.Close()
		return nil, c.sessionRefusedError(err)
	}
	out.stdout = &serialReader{reader: stdout}
	return out, nil
}

// serialReader allows the output reader of a session and endSession to read concurrently. At the end of an SSH channel,
// only one reader is woken. Another reader would wait forever, even after the end of the connection.
type serialReader struct {
	mu     sync.Mutex
	reader io.Reader
}

func (r *serialReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reader.Read(p)
}

// start sends request to the SSH server and waits until the requested program or subsystem has started.
func (c *Connection) start(ctx context.Context, s *session, request func() error) error {
	w := newWatch(c.clock, "the SSH server to start a program", c.limits.ExecStartTimeout)
	err := c.runWork(ctx, w, func() { _ = s.Close() }, request)
	if err != nil {
		c.endSession(ctx, s, nil)
	}
	return c.callerError(ctx, err, c.sessionRefusedError)
}

// sessionRefusedError returns the error for a session that the SSH server does not open.
func (c *Connection) sessionRefusedError(err error) error {
	e := &Error{Reason: ReasonSessionRejected, Host: c.target.Address, Err: err,
		Message: fmt.Sprintf("the SSH server does not start a session (%s)", sanitizeText(err.Error())),
		Next:    "see the log of the service sshd on the host, and the settings MaxSessions, ForceCommand and DefaultShell"}
	if timeout := (*TimeoutError)(nil); errors.As(err, &timeout) {
		e.Reason = ReasonConnectionTimedOut
		e.Message = fmt.Sprintf("the host does not respond on an open connection (%v)", timeout)
		e.Next = "check that the host is not overloaded"
	}
	return e
}

// endSession waits until a session has ended and closes it after the limit of w, or immediately if w is nil. If the
// session still does not end, the connection is closed.
func (c *Connection) endSession(ctx context.Context, s *session, w *watch) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, s.stdout)
		s.exit = s.Wait()
	}()
	ended := w != nil && w.waitFor(ctx, done) == nil
	_ = s.Close()
	if ended {
		return
	}
	end := newWatch(c.clock, "the SSH server to close a session", c.limits.EndTimeout)
	if err := end.waitFor(context.WithoutCancel(ctx), done); err != nil {
		c.closeWithCause(c.lostError(err))
		<-done
	}
}

// exitText describes the exit of a program.
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
