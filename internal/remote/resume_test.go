package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pkg/sftp"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// counted counts the received bytes of a connection.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func TestSend_InterruptedArchiveResumed(t *testing.T) {
	archive := testContent(12 << 20)
	const target = `C:\k\wicd\inbox\payload-0123.zst`
	key := newKey(t)
	// The last megabyte, the packets in flight, and the data that a busy server has received but not written are sent
	// again.
	const tail = 6 << 20
	for name, c := range map[string]struct {
		cut      int64
		tamper   func([]byte) []byte
		mostSent int64
		spoilt   bool
	}{
		"near its beginning": {cut: 1 << 20, mostSent: 13 << 20},
		"near its end":       {cut: 11 << 20, mostSent: tail},
		"and what was under way is sent again": {cut: 11 << 20, tamper: func(b []byte) []byte {
			clear(b[len(b)-1<<20:])
			return b
		}, mostSent: tail},
		"unless what lies there is too long": {cut: 11 << 20, tamper: func([]byte) []byte {
			return make([]byte, 13<<20)
		}, mostSent: 13 << 20},
		"and the receiver must check what it gets": {cut: 11 << 20, tamper: func(b []byte) []byte {
			clear(b[:100])
			return b
		}, mostSent: tail, spoilt: true},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			s := newServer(t, key)
			var connections atomic.Int32
			var received atomic.Int64
			s.wrap = func(conn net.Conn) net.Conn {
				if connections.Add(1) > 1 {
					return counted{conn, &received}
				}
				faulty := &cutConn{Conn: conn}
				faulty.left.Store(c.cut)
				return faulty
			}
			send := func(connection *remote.Connection, progress func(done, total int64)) error {
				return connection.Send(t.Context(), target, io.NewSectionReader(bytes.NewReader(archive), 0, int64(len(archive))), progress)
			}
			first := s.mustConnect(&remote.Dialer{}, key)
			expectError(t, send(first, nil), remote.ReasonConnectionLost)
			<-first.Done()
			waitFor(t, "the server has written what it received", func() bool { return s.living.Load() == 0 })
			if c.tamper != nil {
				dir := "C:/k/wicd/inbox/"
				left := dir + s.disk.listNames(dir)[0]
				s.disk.writeFile(left, string(c.tamper(s.disk.readFile(left))))
			}
			var last int64
			if err := send(s.mustConnect(&remote.Dialer{}, key), func(done, _ int64) { last = done }); err != nil {
				t.Fatal(err)
			}
			if got := received.Load(); got > c.mostSent {
				t.Errorf("%d bytes were sent, want at most %d", got, c.mostSent)
			}
			if last != int64(len(archive)) {
				t.Errorf("progress ends at %d", last)
			}
			if spoilt := !bytes.Equal(s.disk.readFile(sftpForm(target)), archive); spoilt != c.spoilt {
				t.Errorf("what arrived is spoilt: %t", spoilt)
			}
			if names := s.disk.listNames("C:/k/wicd/inbox"); len(names) != 1 {
				t.Errorf("left are %v", names)
			}
		})
	}
}

// A server process of an interrupted connection may hold the file until the host detects the interruption.
func TestSend_RestartsIfPartialFileInUse(t *testing.T) {
	archive := testContent(3 << 20)
	const target, partial = `C:\k\wicd\inbox\payload-0123.zst`, "/C:/k/wicd/inbox/payload-0123.zst.partial-resume"
	for name, held := range map[string][]string{
		"and cannot be opened":  {"Put " + partial, "Remove " + partial},
		"and cannot be renamed": {"Rename " + partial, "Remove " + partial},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			key := newKey(t)
			s := newServer(t, key)
			s.disk.writeFile(partial[1:], string(archive[:len(archive)/2]))
			for _, request := range held {
				s.disk.failures[request] = sftp.ErrSSHFxPermissionDenied
			}
			var last int64
			err := s.mustConnect(&remote.Dialer{}, key).Send(t.Context(), target, io.NewSectionReader(bytes.NewReader(archive), 0,
				int64(len(archive))),
				func(done, _ int64) { last = done })
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(s.disk.readFile(sftpForm(target)), archive) || last != int64(len(archive)) {
				t.Errorf("another content arrived, or progress ends at %d", last)
			}
		})
	}
}

// A host with a nearly full drive must not keep files that no upload resumes.
func TestSend_DeletesPartialFileOfOtherArchive(t *testing.T) {
	noLeaks(t)
	key := newKey(t)
	s := newServer(t, key)
	const inbox = "C:/k/wicd/inbox/"
	s.disk.writeFile(inbox+"payload-old.zst.partial-resume", "half")
	s.disk.writeFile(inbox+"spec-0123.json", "{}")
	send := io.NewSectionReader(strings.NewReader("new"), 0, 3)
	if err := s.mustConnect(&remote.Dialer{}, key).Send(t.Context(), `C:\k\wicd\inbox\payload-new.zst`,
		send, nil); err != nil {
		t.Fatal(err)
	}
	if names := s.disk.listNames(inbox); !slices.Equal(names, []string{"payload-new.zst", "spec-0123.json"}) {
		t.Errorf("left are %v", names)
	}
}

// A context may be canceled with a cause when the operator stops.
func TestSend_CancelWithCauseKeepsPartialFile(t *testing.T) {
	noLeaks(t)
	key := newKey(t)
	s := newServer(t, key)
	archive := testContent(12 << 20)
	ctx, stop := context.WithCancelCause(t.Context())
	err := s.mustConnect(&remote.Dialer{}, key).Send(ctx, `C:\k\wicd\inbox\payload-0123.zst`,
		io.NewSectionReader(bytes.NewReader(archive), 0, int64(len(archive))), func(done, _ int64) {
			if done > 6<<20 {
				stop(errors.New("the operator ends"))
			}
		})
	if err == nil {
		t.Fatal("it was sent")
	}
	if names := s.disk.listNames("C:/k/wicd/inbox"); !slices.Equal(names, []string{"payload-0123.zst.partial-resume"}) {
		t.Errorf("left are %v", names)
	}
}
