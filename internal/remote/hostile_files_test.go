package remote_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// hostileFiles answers file operations as configured by a test.
type hostileFiles struct {
	list func(r *sftp.Request) sftp.ListerAt
	data byte
}

func (l hostileFiles) sftpHandlers() *sftp.Handlers {
	return &sftp.Handlers{FileGet: l, FilePut: l, FileCmd: l, FileList: l}
}

func (l hostileFiles) Fileread(*sftp.Request) (io.ReaderAt, error)     { return l, nil }
func (l hostileFiles) Filewrite(*sftp.Request) (io.WriterAt, error)    { return l, nil }
func (l hostileFiles) Filelist(r *sftp.Request) (sftp.ListerAt, error) { return l.list(r), nil }
func (l hostileFiles) WriteAt(p []byte, _ int64) (int, error)          { return len(p), nil }
func (l hostileFiles) ReadAt(p []byte, _ int64) (int, error) {
	return copy(p, bytes.Repeat([]byte{l.data}, len(p))), nil
}

// Filecmd fails to delete directories, as if they were never empty.
func (l hostileFiles) Filecmd(r *sftp.Request) error {
	if r.Method == "Rmdir" {
		return sftp.ErrSSHFxFailure
	}
	return nil
}

// entry is a nonexistent file or directory, optionally in an endless list.
type entry struct {
	name    string
	size    int64
	mode    fs.FileMode
	endless bool
}

func (e entry) Name() string       { return e.name }
func (e entry) Size() int64        { return e.size }
func (e entry) Mode() fs.FileMode  { return e.mode }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.mode.IsDir() }
func (e entry) Sys() any           { return nil }

// ListAt returns the entry for each position of the list.
func (e entry) ListAt(into []os.FileInfo, offset int64) (int, error) {
	if !e.endless && offset > 0 {
		return 0, io.EOF
	}
	n := len(into)
	if !e.endless {
		n = min(n, 1)
	}
	for i := range n {
		into[i] = e
	}
	if !e.endless {
		return n, io.EOF
	}
	return n, nil
}

// newHostileHost returns a connection to a host with a file server that returns the given entry for every request.
func newHostileHost(t *testing.T, is entry) *remote.Connection {
	t.Helper()
	noLeaks(t)
	_, c := hostWith(t, nil, func(s *server) {
		s.handlers = hostileFiles{list: func(*sftp.Request) sftp.ListerAt { return is }, data: 'x'}.sftpHandlers()
	})
	return c
}

func TestFiles_HostileServerBounded(t *testing.T) {
	dir := entry{name: "a", mode: fs.ModeDir | 0o755}
	t.Run("a list without an end", func(t *testing.T) {
		endless := dir
		endless.name, endless.endless = strings.Repeat("n", 200), true
		c := newHostileHost(t, endless)
		err := c.Remove(t.Context(), `C:\k\wicd`)
		expectError(t, err, remote.ReasonTransferFailed, "more than 32 MiB")
		fitForStatus(t, err)
	})
	t.Run("folders in folders without an end", func(t *testing.T) {
		c := newHostileHost(t, dir)
		err := c.Remove(t.Context(), `C:\k\wicd`)
		expectError(t, err, remote.ReasonRemovalIncomplete, "more than 64 levels deep")
		fitForStatus(t, err)
	})
	t.Run("names with control characters in what could not be deleted", func(t *testing.T) {
		colored := dir
		colored.name = "\x1b[31mred\u202e"
		c := newHostileHost(t, colored)
		fitForStatus(t, c.Remove(t.Context(), `C:\k\wicd`))
	})
	t.Run("a file that never ends", func(t *testing.T) {
		c := newHostileHost(t, entry{name: "keys", mode: 0o600})
		err := remote.Authorize(t.Context(), c, newKey(t).Signer().PublicKey(), "Administrator")
		expectError(t, err, remote.ReasonTransferFailed, "longer than 1048576 bytes")
	})
	t.Run("sizes that no file has", func(t *testing.T) {
		for _, size := range []int64{-1, -1 << 63, 1<<63 - 1} {
			c := newHostileHost(t, entry{name: "payload.zst.resume", size: size, mode: 0o600})
			content := io.NewSectionReader(strings.NewReader(strings.Repeat("p", 100_000)), 0, 100_000)
			err := c.Send(t.Context(), `C:\k\wicd\inbox\payload.zst`, content, nil)
			expectError(t, err, remote.ReasonTransferFailed, "of 100000 bytes")
			if strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("size %d: the operator's own file is blamed: %v", size, err)
			}
			if exists, err := c.Has(t.Context(), `C:\k\wicd\inbox\payload.zst`, 100_000); exists || err != nil {
				t.Errorf("size %d: %t, %v", size, exists, err)
			}
		}
	})
}
