package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Excerpt is a part of a file.
type Excerpt struct {
	Body []byte
	// Offset is the start of the part, Size is the size of the file, both in bytes.
	Offset, Size int64
	// Modified is the time of the last modification by the host's clock.
	Modified time.Time
}

// errLink reports a path through a link: the creator of the link could choose the file that is read.
var errLink = errors.New("symbolic links are not followed")

// List returns the entries of a directory, sorted by name. Symbolic links are not followed. If the directory does not
// exist, the error is fs.ErrNotExist.
func (c *Connection) List(ctx context.Context, windows string) (entries []fs.FileInfo, err error) {
	err = c.read(ctx, windows, func(ctx context.Context, s *fileSession, name string) error {
		entries, err = s.ReadDirContext(ctx, name)
		return err
	})
	return entries, err
}

// Read returns at most the given number of bytes of a file, starting at offset, or the end of the file if offset is
// negative. Symbolic links are not followed. If the file does not exist, the error is fs.ErrNotExist.
func (c *Connection) Read(ctx context.Context, windows string, offset, most int64) (Excerpt, error) {
	part := Excerpt{}
	err := c.read(ctx, windows, func(_ context.Context, s *fileSession, name string) error {
		file, err := s.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // opened for reading only
		info, err := file.Stat()
		if err != nil {
			return err
		}
		part.Offset, part.Size, part.Modified = offset, info.Size(), info.ModTime()
		if offset < 0 {
			part.Offset = max(0, part.Size-most)
		}
		part.Body = make([]byte, max(0, min(most, part.Size-part.Offset)))
		n, err := file.ReadAt(part.Body, part.Offset)
		part.Body = part.Body[:n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	return part, err
}

// read runs work on a file or directory if the path contains no symbolic link. Junctions cannot be detected: OpenSSH
// for Windows reports them as directories. A junction can lead only to a directory of the same host.
func (c *Connection) read(ctx context.Context, windows string, work func(ctx context.Context, s *fileSession, name string) error) error {
	name, err := sftpPath(windows)
	if err != nil {
		return err
	}
	err = c.runFileOperation(ctx, "a response about "+windows, c.limits.FileTimeout, func(ctx context.Context, s *fileSession) error {
		if err := checkNoLinks(s, name); err != nil {
			return err
		}
		return work(ctx, s, name)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s on host %s: %w", windows, c.target.Address, fs.ErrNotExist)
	}
	return c.callerError(ctx, err, func(err error) error { return c.transferError("read "+windows, err) })
}

// checkNoLinks returns an error unless all parents of an entry are directories and the entry is a directory or a
// regular file.
func checkNoLinks(s *fileSession, name string) error {
	for at := name; strings.Count(at, "/") >= 2; at = path.Dir(at) {
		info, err := s.Lstat(at)
		if err != nil {
			return err
		}
		if mode := info.Mode(); !mode.IsRegular() && !mode.IsDir() || at != name && !mode.IsDir() {
			return fmt.Errorf("%s: %w", windowsPath(at), errLink)
		}
	}
	return nil
}
