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
	// Offset and Size are in bytes: where the part begins, and how large the file was.
	Offset, Size int64
	// Modified is when the file was written to last, by the host's clock.
	Modified time.Time
}

// errLink is of a path on which something leads elsewhere: whoever has made it would choose what is read.
var errLink = errors.New("a link is on the way, and is not followed")

// List returns the entries of a folder, by name. No symbolic link is followed. The error for a folder that is not there is
// fs.ErrNotExist.
func (c *Connection) List(ctx context.Context, windows string) (entries []fs.FileInfo, err error) {
	err = c.read(ctx, windows, func(ctx context.Context, s *fileSession, name string) error {
		entries, err = s.ReadDirContext(ctx, name)
		return err
	})
	return entries, err
}

// Read returns a part of a file, of at most so many bytes: from an offset on or, if that is negative, the end. No
// symbolic link is followed. The error for a file that is not there is fs.ErrNotExist.
func (c *Connection) Read(ctx context.Context, windows string, offset, most int64) (Excerpt, error) {
	part := Excerpt{}
	err := c.read(ctx, windows, func(_ context.Context, s *fileSession, name string) error {
		file, err := s.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was only read
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

// read does something with a file or folder to which no symbolic link leads. A junction cannot be recognized: OpenSSH for
// Windows shows it as a folder. A junction leads to a folder of the same host only.
func (c *Connection) read(ctx context.Context, windows string, work func(ctx context.Context, s *fileSession, name string) error) error {
	name, err := sftpPath(windows)
	if err != nil {
		return err
	}
	err = c.operate(ctx, "an answer about "+windows, c.limits.File, func(ctx context.Context, s *fileSession) error {
		if err := direct(s, name); err != nil {
			return err
		}
		return work(ctx, s, name)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s on host %s: %w", windows, c.target.Address, fs.ErrNotExist)
	}
	return c.verdict(ctx, err, func(err error) error { return c.transferFailed("read "+windows, err) })
}

// direct is an error unless everything on the way to an entry is a folder, and the entry a folder or a file.
func direct(s *fileSession, name string) error {
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
