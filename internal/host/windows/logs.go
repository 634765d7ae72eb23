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

// logs is host.Logs: CreateFileW with full sharing, a copy, and SetEndOfFile. A log cannot be renamed: its writer keeps
// it open without FILE_SHARE_DELETE, as Go's programs do. A writer that opened it with FILE_APPEND_DATA alone writes at
// whatever the end is, so it goes on at the beginning of the emptied file.
type logs struct{}

func (logs) Rotate(ctx context.Context, path, to string) error {
	from, err := begin(ctx, "rotate", path)
	if err != nil {
		return err
	}
	target, err := begin(ctx, "rotate", to)
	if err != nil {
		return err
	}
	if err := rotate(ctx, from, target); err != nil {
		return fmt.Errorf("rotate %s to %s: %w", path, to, err)
	}
	return nil
}

func rotate(ctx context.Context, from, to drivePath) error {
	info, err := describe(from)
	if err != nil {
		return fault("open", from.String(), err)
	}
	log, err := openFile(from, windows.GENERIC_READ|windows.GENERIC_WRITE, shareAll, windows.OPEN_EXISTING, nil)
	if err != nil {
		return fault("open", from.String(), err)
	}
	err = copyLog(ctx, log, to, info.Access)
	if err == nil {
		err = empty(ctx, log, to)
	}
	_ = log.Close() // nothing was written through it that could still fail
	return err
}

// empty empties the log. Where that fails, as it does while a program has the log mapped into its memory, the copy
// goes: the log still has every line, and the next try makes another copy.
func empty(ctx context.Context, log *os.File, rotated drivePath) error {
	err := log.Truncate(0)
	if err == nil {
		return nil
	}
	err = fault("empty", log.Name(), err)
	// Virus scanners look at new files for a moment, in which they cannot be deleted.
	if removeErr := removeAll(context.WithoutCancel(ctx), rotated); removeErr != nil {
		err = errors.Join(err, fault("delete", rotated.String(), removeErr))
	}
	return err
}

// copyLog copies the log to a file that only now is made, for those who may use the log. It is whole and on the disk,
// or it is not there.
func copyLog(ctx context.Context, log *os.File, to drivePath, access host.Access) error {
	security, err := securityOf(access, false)
	if err != nil {
		return err
	}
	rotated, err := openFile(to, windows.GENERIC_WRITE, windows.FILE_SHARE_READ, windows.CREATE_NEW, security)
	if err != nil {
		return fault("make", to.String(), err)
	}
	err = transfer(ctx, rotated, log)
	if err == nil {
		err = rotated.Sync()
	}
	if err = errors.Join(err, rotated.Close()); err != nil {
		_ = removeAll(context.WithoutCancel(ctx), to) // best effort: the copy has failed already
		return fault("write", to.String(), err)
	}
	return nil
}

// openFile opens a file, links followed.
func openFile(path drivePath, access, share, disposition uint32, security *windows.SecurityAttributes) (*os.File,
	error) {
	name, err := windows.UTF16PtrFromString(path.extended())
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateFile(name, access, share, security, disposition, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(handle), path.String()), nil
}
