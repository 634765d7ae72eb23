package remote_test

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pkg/sftp"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// A virus scanner opens each new file, and Windows refuses to rename an open file.
func TestSend_RenameRetriedWhileFileIsScanned(t *testing.T) {
	t.Parallel()
	archive := testContent(1 << 20)
	const target = `C:\k\wicd\inbox\payload-0123.zst`
	for name, send := range map[string]func(*remote.Connection) error{
		"an upload": func(c *remote.Connection) error {
			return c.Upload(t.Context(), target, int64(len(archive)), bytes.NewReader(archive), nil)
		},
		"an archive": func(c *remote.Connection) error {
			return c.Send(t.Context(), target, io.NewSectionReader(bytes.NewReader(archive), 0, int64(len(archive))), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := newKey(t)
			s := newServer(t, key)
			s.disk.scans = 6
			var received atomic.Int64
			s.wrap = func(conn net.Conn) net.Conn { return counted{conn, &received} }
			if err := send(s.mustConnect(&remote.Dialer{}, key)); err != nil {
				t.Fatal(err)
			}
			if got, most := received.Load(), int64(len(archive))*3/2; got > most {
				t.Errorf("%d bytes were sent, want at most %d", got, most)
			}
			if names := s.disk.listNames("C:/k/wicd/inbox"); !slices.Equal(names, []string{"payload-0123.zst"}) {
				t.Errorf("left are %v", names)
			}
		})
	}
}

func TestSend_ArchiveNotResentAfterFailedRename(t *testing.T) {
	t.Parallel()
	archive := testContent(8 << 20)
	const target, inbox = `C:\k\wicd\inbox\payload-0123.zst`, "C:/k/wicd/inbox"
	key := newKey(t)
	s := newServer(t, key)
	var received atomic.Int64
	s.wrap = func(conn net.Conn) net.Conn { return counted{conn, &received} }
	send := func() error {
		return s.mustConnect(&remote.Dialer{}, key).Send(t.Context(), target,
			io.NewSectionReader(bytes.NewReader(archive), 0, int64(len(archive))), nil)
	}
	s.disk.failures["Rename"] = sftp.ErrSSHFxPermissionDenied
	expectError(t, send(), remote.ReasonTransferFailed, "virus scanner")
	if got, most := received.Load(), int64(len(archive))*3/2; got > most {
		t.Errorf("%d bytes were sent, want at most %d", got, most)
	}
	if names := s.disk.listNames(inbox); !slices.Equal(names, []string{"payload-0123.zst.partial-resume"}) {
		t.Fatalf("left are %v", names)
	}
	s.disk.mu.Lock()
	delete(s.disk.failures, "Rename")
	s.disk.mu.Unlock()
	received.Store(0)
	if err := send(); err != nil {
		t.Fatal(err)
	}
	if got, most := received.Load(), int64(3<<20); got > most {
		t.Errorf("%d bytes were sent again, want at most %d", got, most)
	}
	if !bytes.Equal(s.disk.readFile(sftpForm(target)), archive) {
		t.Error("another content arrived")
	}
	if names := s.disk.listNames(inbox); !slices.Equal(names, []string{"payload-0123.zst"}) {
		t.Errorf("left are %v", names)
	}
}
