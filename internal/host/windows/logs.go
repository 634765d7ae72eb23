//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// logs implements host.Logs with CreateFileW in full sharing mode, a copy, and SetEndOfFile. A log cannot be
// renamed, because the writer keeps the file open without FILE_SHARE_DELETE, like Go programs. A writer with only
// FILE_APPEND_DATA always appends at the current end, and therefore continues at the start of the truncated file.
type logs struct{}

func (logs) Rotate(ctx context.Context, path, to string) error {
	from, err := beginOperation(ctx, "rotate", path)
	if err != nil {
		return err
	}
	target, err := beginOperation(ctx, "rotate", to)
	if err != nil {
		return err
	}
	if err := rotateLog(ctx, from, target); err != nil {
		return fmt.Errorf("rotate %s to %s: %w", path, to, err)
	}
	return nil
}

func rotateLog(ctx context.Context, from, to drivePath) error {
	info, err := statPath(from)
	if err != nil {
		return wrapFileError("open", from.String(), err)
	}
	log, err := openFile(from, windows.GENERIC_READ|windows.GENERIC_WRITE, shareAll, windows.OPEN_EXISTING, nil)
	if err != nil {
		return wrapFileError("open", from.String(), err)
	}
	err = copyLog(ctx, log, to, info.Access)
	if err == nil {
		err = truncateLog(ctx, log, to)
	}
	_ = log.Close() // a failed close cannot lose data
	return err
}

// truncateLog truncates the log. If the truncation fails, for example because a program has mapped the log into memory,
// truncateLog deletes the copy: the log still has every line, and the next attempt creates another copy.
func truncateLog(ctx context.Context, log *os.File, rotated drivePath) error {
	err := log.Truncate(0)
	if err == nil {
		return nil
	}
	err = wrapFileError("truncate", log.Name(), err)
	// Virus scanners open new files briefly and block their deletion.
	if removeErr := removeAll(context.WithoutCancel(ctx), rotated); removeErr != nil {
		err = errors.Join(err, wrapFileError("delete", rotated.String(), removeErr))
	}
	return err
}

// copyLog copies the log to a new file with the same access. The copy is complete and on disk, or missing.
func copyLog(ctx context.Context, log *os.File, to drivePath, access host.Access) error {
	security, err := securityOf(access, false)
	if err != nil {
		return err
	}
	rotated, err := openFile(to, windows.GENERIC_WRITE, windows.FILE_SHARE_READ, windows.CREATE_NEW, security)
	if err != nil {
		return wrapFileError("make", to.String(), err)
	}
	err = copyContent(ctx, rotated, log)
	if err == nil {
		err = rotated.Sync()
	}
	if err = errors.Join(err, rotated.Close()); err != nil {
		_ = removeAll(context.WithoutCancel(ctx), to) // best effort: the copy has already failed
		return wrapFileError("write", to.String(), err)
	}
	return nil
}

// openFile opens a file and follows links.
func openFile(path drivePath, access, share, disposition uint32, security *windows.SecurityAttributes) (*os.File,
	error) {
	name, err := windows.UTF16PtrFromString(path.extendedPath())
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateFile(name, access, share, security, disposition, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(handle), path.String()), nil
}
