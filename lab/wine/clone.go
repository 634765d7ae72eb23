package wine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// linkedFrom is the size in bytes from which files of the base are hard links in clones. They are Windows' own programs
// and libraries, which nobody writes to; what is smaller, and the registry, may be written in place and is copied.
const linkedFrom = 64 << 10

// clonePrefix makes a Windows installation like another, at once.
func clonePrefix(from, to string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return cloneEntry(path, filepath.Join(to, name), entry)
	})
	if err != nil {
		return fmt.Errorf("clone the Windows installation: %w", err)
	}
	return nil
}

func cloneEntry(from, to string, entry fs.DirEntry) error {
	switch {
	case entry.IsDir():
		return os.MkdirAll(to, 0o755)
	case entry.Type() == fs.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if info.Size() >= linkedFrom && !strings.HasSuffix(from, ".reg") {
		return os.Link(from, to)
	}
	if err := copyFile(from, to); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime()) // Wine compares times to know whether it was updated
}

// copyFile makes a file again: one that is there is not written to, it may be a link to the base's.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
