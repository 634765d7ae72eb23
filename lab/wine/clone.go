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

// linkedFrom is the minimum size in bytes of base files that clones share as hard links. Such files are
// programs and libraries of Windows, which are never written to. Smaller files and the registry may be written
// in place and are copied.
const linkedFrom = 64 << 10

// clonePrefix clones a Windows installation.
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
	return os.Chtimes(to, info.ModTime(), info.ModTime()) // Wine compares the times to detect updates
}

// copyFile replaces an existing file instead of writing to it, because the file may be a hard link to a base
// file.
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
