package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"
)

// files holds the single SFTP session of a connection, opened on first use.
type files struct {
	opening chan struct{} // holds a token while no caller opens the session

	mu      sync.Mutex
	current *fileSession
}

func (f *files) init() {
	f.opening = make(chan struct{}, 1)
	f.opening <- struct{}{}
}

func (f *files) get() *fileSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != nil && f.current.hasEnded() {
		f.current = nil
	}
	return f.current
}

func (f *files) setCurrent(s *fileSession) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = s
}

// fileSession is an open SFTP session.
type fileSession struct {
	*sftp.Client
	gone chan struct{} // closed when the session has ended

	mu      sync.Mutex
	watches map[*watch]int // running operations, with the bytes received since the start of each
	flooded bool
}

// operationLimit is the maximum size of the answer to one file operation, in bytes. A directory list has some KiB,
// and the acknowledgments of a transfer have a thousandth of its size.
const operationLimit = 32 << 20

// errFlood ends the session of a host that exceeds operationLimit.
var errFlood = fmt.Errorf("the host sent more than %d MiB in response to one file operation", operationLimit>>20)

func (s *fileSession) hasEnded() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// observeReads returns a reader of the session's output for the SFTP client. Every answer counts as activity of all
// running operations.
func (s *fileSession) observeReads(r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		if n == 0 {
			return n, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for w, received := range s.watches {
			w.recordActivity()
			s.watches[w] = received + n
			s.flooded = s.flooded || received+n > operationLimit
		}
		if s.flooded {
			return 0, errFlood
		}
		return n, err
	})
}

func (s *fileSession) setWatching(w *watch, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.watches[w] = 0
	} else {
		delete(s.watches, w)
	}
}

// isFlooded reports whether the session was ended with errFlood.
func (s *fileSession) isFlooded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flooded
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// getFileSession returns the connection's SFTP session and opens the session if needed.
func (c *Connection) getFileSession(ctx context.Context) (*fileSession, error) {
	select {
	case <-c.files.opening:
		defer func() { c.files.opening <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s := c.files.get(); s != nil {
		return s, nil
	}
	s, err := c.openFileSession(ctx)
	if err == nil {
		c.files.setCurrent(s)
	}
	return s, err
}

// openFileSession opens an SFTP session. It uses packets of 32 KiB, which every server supports. Up to 64 packets are
// in flight, the size of a channel's window.
func (c *Connection) openFileSession(ctx context.Context) (*fileSession, error) {
	raw, err := c.openSession(ctx)
	if err != nil {
		return nil, err
	}
	stdin, err := raw.StdinPipe()
	if err != nil {
		_ = raw.Close()
		return nil, c.sessionRefusedError(err)
	}
	out := &fileSession{gone: make(chan struct{}), watches: map[*watch]int{}}
	err = c.start(ctx, raw, func() error {
		if err := raw.RequestSubsystem("sftp"); err != nil {
			return err
		}
		var err error
		out.Client, err = sftp.NewClientPipe(out.observeReads(raw.stdout), stdin, sftp.UseConcurrentWrites(true))
		return err
	})
	if ReasonOf(err) == ReasonSessionRejected {
		return nil, &Error{Reason: ReasonTransferFailed, Host: c.target.Address, Err: err,
			Message: "the SSH server offers no file transfer (SFTP)",
			Next:    "restore the line Subsystem sftp sftp-server.exe in C:\\ProgramData\\ssh\\sshd_config on the host and restart the service sshd"}
	}
	if err != nil {
		return nil, err
	}
	go func() {
		_ = out.Wait()
		close(out.gone)
		_ = raw.Close()
	}()
	return out, nil
}

// runFileOperation runs file operations on the SFTP session under the stall limit and the given limit. waiting
// describes the awaited event.
func (c *Connection) runFileOperation(ctx context.Context, waiting string, limit time.Duration,
	work func(ctx context.Context, s *fileSession) error) error {
	s, err := c.getFileSession(ctx)
	if err != nil {
		return err
	}
	w := newWatch(c.clock, waiting, c.limits.SFTPStallTimeout).limitTotal(limit)
	s.setWatching(w, true)
	defer s.setWatching(w, false)
	err = c.runWork(ctx, w, nil, func() error { return work(ctx, s) })
	if err != nil && s.isFlooded() {
		return errFlood
	}
	return err
}

// sftpPath returns the SFTP form (/C:/k/x) of an absolute Windows path (C:\k\x). It rejects paths that are not plain.
func sftpPath(windows string) (string, error) {
	slashed := strings.ReplaceAll(windows, `\`, "/")
	drive, rest, ok := strings.Cut(slashed, ":")
	letter := len(drive) == 1 && strings.Contains("abcdefghijklmnopqrstuvwxyz", strings.ToLower(drive))
	if !ok || !letter || !strings.HasPrefix(rest, "/") || strings.ContainsAny(rest, "\x00:*?\"<>|") ||
		path.Clean(rest) != rest {
		return "", fmt.Errorf("%q is not a plain absolute Windows path", windows)
	}
	return "/" + drive + ":" + rest, nil
}

// windowsPath returns the Windows form of an SFTP path.
func windowsPath(sftpPath string) string {
	return strings.ReplaceAll(strings.TrimPrefix(sftpPath, "/"), "/", `\`)
}

// Exists reports whether a file or directory exists at a Windows path.
func (c *Connection) Exists(ctx context.Context, windows string) (bool, error) {
	info, err := c.statFile(ctx, windows)
	return info != nil, err
}

// Has reports whether a file of this size in bytes exists at a Windows path. Upload publishes only complete files, so
// a file with a content-addressed name need not be sent again.
func (c *Connection) Has(ctx context.Context, windows string, size int64) (bool, error) {
	info, err := c.statFile(ctx, windows)
	return info != nil && !info.IsDir() && info.Size() == size, err
}

// statFile returns the file information for a Windows path, or nil if the path does not exist.
func (c *Connection) statFile(ctx context.Context, windows string) (fs.FileInfo, error) {
	name, err := sftpPath(windows)
	if err != nil {
		return nil, err
	}
	var info fs.FileInfo
	err = c.runFileOperation(ctx, "a response about "+windows, c.limits.FileTimeout, func(_ context.Context, s *fileSession) (err error) {
		info, err = s.Stat(name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, c.callerError(ctx, err, func(err error) error { return c.transferError("inspect "+windows, err) })
	}
	return info, nil
}

// createDirectories creates a directory and its parents; the root of the drive always exists. All directories are
// requested concurrently, and the requests are repeated until the deepest succeeds, in at most as many rounds as there
// are directories. A server that answers in order has created all directories after one round trip.
func createDirectories(s *fileSession, folder string) error {
	var folders []string // ordered from the top
	for f := folder; strings.Count(f, "/") >= 2; f = path.Dir(f) {
		folders = append([]string{f}, folders...)
	}
	errs := make([]error, len(folders))
	for range folders {
		var group sync.WaitGroup
		for i, f := range folders {
			group.Go(func() { errs[i] = s.Mkdir(f) })
		}
		group.Wait()
		if errs[len(errs)-1] == nil {
			return nil
		}
	}
	// Servers do not report that a directory already exists.
	for i, f := range folders {
		info, err := s.Stat(f)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return cmp.Or(errs[i], err)
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is a file instead of a directory", windowsPath(f))
		}
	}
	return nil
}
