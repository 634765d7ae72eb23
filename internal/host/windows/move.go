//go:build windows

package windows

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
)

// moveEntry moves an entry with MoveFileExW and waits for the disk. MOVEFILE_REPLACE_EXISTING replaces an existing file
// or link.
func moveEntry(ctx context.Context, from, to drivePath, flags uint32) error {
	source, err := windows.UTF16PtrFromString(from.extendedPath())
	if err != nil {
		return err
	}
	target, err := windows.UTF16PtrFromString(to.extendedPath())
	if err != nil {
		return err
	}
	if flags&windows.MOVEFILE_REPLACE_EXISTING != 0 {
		if err := makeReplaceable(from, to); err != nil {
			return err
		}
	}
	err = retryTransient(ctx, clock.RealClock{}, func() error {
		return windows.MoveFileEx(source, target, flags|windows.MOVEFILE_WRITE_THROUGH)
	})
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) && (isHeld(to) || hasHeldFile(from)) {
		err = classifiedError{error: windows.ERROR_SHARING_VIOLATION, hostError: host.ErrInUse}
	}
	return err
}

// makeReplaceable removes conditions that make MoveFileExW fail: a read-only attribute, and an existing link if
// either entry has the directory kind. A directory itself is never replaced.
func makeReplaceable(from, to drivePath) error {
	old, err := findEntry(to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	moved, err := findEntry(from)
	switch {
	case err != nil:
		return err
	case from.isSamePath(to):
		return nil // only the case of the name changes
	case old.isDirectory():
		return windows.ERROR_ALREADY_EXISTS
	case old.hasDirectoryAttribute(), moved.hasDirectoryAttribute() && old.isLink():
		return removeEntry(to)
	case old.attributes&windows.FILE_ATTRIBUTE_READONLY != 0:
		return clearReadOnly(to, old.attributes)
	}
	return nil
}

func clearReadOnly(path drivePath, attributes uint32) error {
	name, err := windows.UTF16PtrFromString(path.extendedPath())
	if err != nil {
		return err
	}
	return windows.SetFileAttributes(name, attributes&^windows.FILE_ATTRIBUTE_READONLY)
}

// isHeld reports whether a process has a file open or runs from it. For the replacement or removal of such a file,
// Windows returns ERROR_ACCESS_DENIED. Opening the file for exclusive writing returns the actual reason.
func isHeld(path drivePath) bool {
	handle, err := openEntry(path, windows.FILE_WRITE_DATA, 0)
	if err == nil {
		_ = windows.CloseHandle(handle) // only opened, not used
		return false
	}
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_USER_MAPPED_FILE)
}

// hasHeldFile reports whether a process holds a file below a directory, because such a directory cannot be moved. A
// held file is not a reason itself, because a running executable can be moved.
func hasHeldFile(path drivePath) bool {
	if found, err := findEntry(path); err != nil || !found.isDirectory() {
		return false
	}
	found := errors.New("found")
	err := filepath.WalkDir(path.String(), func(name string, each fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is not the cause
		}
		p, err := parsePath(name)
		if err == nil && !each.IsDir() && isHeld(p) {
			return found
		}
		return nil
	})
	return errors.Is(err, found)
}

// removeEntry removes a file, a link or an empty directory.
func removeEntry(path drivePath) error {
	err := os.Remove(path.String())
	var known *fs.PathError
	if errors.As(err, &known) {
		return known.Err
	}
	return err
}

// removeAll removes an entry with all its descendants. A missing entry is no error. os.RemoveAll works on NT handles
// relative to the parent directory (NtOpenFile, FileDispositionInformationEx). It never follows a link or junction,
// even if the link is created during the removal. The function ignores the read-only attribute, has no limit on the
// path length, and continues after an entry that cannot be removed. Entries are opened with backup intent
// (FILE_OPEN_FOR_BACKUP_INTENT). This intent, together with the privileges enabled by Open, overrides the
// permissions of foreign owners.
func removeAll(ctx context.Context, path drivePath) error {
	err := retryTransient(ctx, clock.RealClock{}, func() error { return os.RemoveAll(path.String()) })
	var known *fs.PathError
	if !errors.As(err, &known) {
		return err
	}
	if p, bad := parsePath(known.Path); bad == nil && errors.Is(err, windows.ERROR_ACCESS_DENIED) && isHeld(p) {
		known.Err = classifiedError{error: windows.ERROR_SHARING_VIOLATION, hostError: host.ErrInUse}
	}
	return err
}
