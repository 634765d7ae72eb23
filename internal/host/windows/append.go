//go:build windows

package windows

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// appendTo implements host.Files.Write with Append. With FILE_APPEND_DATA as the only write right in CreateFileW,
// NTFS appends each write to the file even with concurrent writers. The file is opened with all share modes and
// closed immediately, so that a log can be read, moved and removed.
func appendTo(ctx context.Context, path drivePath, content io.Reader, options host.WriteOptions) error {
	found, err := findEntry(path)
	switch {
	case err == nil && options.Exclusive:
		return windows.ERROR_ALREADY_EXISTS
	case err == nil && found.isDirectory():
		return windows.ERROR_ACCESS_DENIED
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil:
		if err := checkName(path.baseName()); err != nil {
			return err
		}
	}
	security, err := securityOf(options.Access, false)
	if err != nil {
		return err
	}
	// Security attributes apply only to new files.
	file, err := openFile(path, windows.FILE_APPEND_DATA|windows.SYNCHRONIZE, shareAll, windows.OPEN_ALWAYS, security)
	if err != nil {
		return err
	}
	return errors.Join(copyContent(ctx, file, content), file.Close())
}
