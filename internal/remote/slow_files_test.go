package remote_test

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// answerDelay is the delay of each answer of the slow host, just below the stall limit.
const answerDelay = 29 * time.Second

// slowHost is a file server that delays every answer by answerDelay of the fake clock.
type slowHost struct {
	hostileFiles
	clock   *testClock
	timeout time.Duration // of the tested operation
	begin   time.Time
	list    int // number of entries in each directory

	mu     sync.Mutex
	closed <-chan struct{} // closed when the connection has ended
	waited bool            // answer has waited for gone
}

func connectSlow(t *testing.T, limit, stall time.Duration) (*slowHost, *remote.Connection) {
	t.Helper()
	noLeaks(t)
	key := newKey(t)
	s := newServer(t, key)
	d, clock := fakeDialer()
	d.Limits.SFTPStallTimeout, d.Limits.KeepaliveInterval = stall, 24*time.Hour
	h := &slowHost{clock: clock, timeout: limit, begin: clock.Now()}
	s.handlers = &sftp.Handlers{FileGet: h, FilePut: h, FileCmd: h, FileList: h}
	c := s.mustConnect(d, key)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = c.Done()
	return h, c
}

// delayAnswer advances the clock by answerDelay. After the limit, it waits until the operator detects the timeout.
func (h *slowHost) delayAnswer() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock.Step(answerDelay)
	if h.waited || h.clock.Since(h.begin) <= h.timeout {
		return
	}
	h.waited = true
	select {
	case <-h.closed:
	case <-time.After(10 * time.Second): // the operator does not detect the timeout
	}
}

func (h *slowHost) Filewrite(*sftp.Request) (io.WriterAt, error) { return h, nil }
func (h *slowHost) WriteAt(p []byte, _ int64) (int, error) {
	h.delayAnswer()
	return len(p), nil
}

func (h *slowHost) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	if r.Method != "List" {
		return entry{name: "wicd", mode: fs.ModeDir | 0o755}, nil
	}
	return h, nil
}

// ListAt returns one entry per call.
func (h *slowHost) ListAt(into []os.FileInfo, offset int64) (int, error) {
	if offset >= int64(h.list) {
		return 0, io.EOF
	}
	h.delayAnswer()
	into[0] = entry{name: "x", mode: 0o600}
	return 1, nil
}

// A host that answers just often enough cannot prolong a file operation.
func TestFiles_SlowHostDoesNotExtendTimeout(t *testing.T) {
	t.Run("a list that comes entry by entry ends after the limit", func(t *testing.T) {
		h, c := connectSlow(t, remote.DefaultFileTimeout, stallTimeout)
		h.list = 1000 // enough for eight hours
		err := c.Remove(t.Context(), `C:\k\wicd`)
		expectOverall(t, err, "could not delete C:\\k\\wicd: the host responds too slowly (not completed within 2m0s)")
		if elapsed := h.clock.Since(h.begin); elapsed > remote.DefaultFileTimeout+2*answerDelay {
			t.Errorf("it has taken %s", elapsed)
		}
		<-c.Done() // other callers get a new connection
	})
	t.Run("a transfer may take the time of its size, and not more", func(t *testing.T) {
		const size = 10 << 20
		limit := remote.DefaultFileTimeout + size/(remote.DefaultMinTransferRate<<10)*time.Second
		h, c := connectSlow(t, limit, time.Hour)
		err := c.Upload(t.Context(), `C:\k\x`, size, strings.NewReader(strings.Repeat("x", size)), nil)
		expectOverall(t, err, "could not send C:\\k\\x: the host responds too slowly (not completed within 7m20s)")
		if elapsed := h.clock.Since(h.begin); elapsed < limit {
			t.Errorf("it has ended after %s, before the limit of %s", elapsed, limit)
		}
	})
}

// expectOverall checks the error of an operation that exceeded its total time.
func expectOverall(t *testing.T, err error, text string) {
	t.Helper()
	e := expectError(t, err, remote.ReasonTransferFailed, text)
	if !e.Timeout() {
		t.Errorf("it is not a time-out: %v", err)
	}
	fitForStatus(t, err)
}
