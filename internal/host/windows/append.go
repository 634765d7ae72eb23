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

// appendTo is host.Files.Write with Append. CreateFileW with FILE_APPEND_DATA and nothing else makes NTFS put each
// write at the file's end, whoever else writes. The file is shared for everything and closed at once, so that a log can
// be read, moved and removed.
func appendTo(ctx context.Context, path drivePath, content io.Reader, options host.WriteOptions) error {
	found, err := findEntry(path)
	switch {
	case err == nil && options.Exclusive:
		return windows.ERROR_ALREADY_EXISTS
	case err == nil && found.folder():
		return windows.ERROR_ACCESS_DENIED
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil:
		if err := checkName(path.name()); err != nil {
			return err
		}
	}
	security, err := securityOf(options.Access, false)
	if err != nil {
		return err
	}
	// Security attributes count for new files only.
	file, err := openFile(path, windows.FILE_APPEND_DATA|windows.SYNCHRONIZE, shareAll, windows.OPEN_ALWAYS, security)
	if err != nil {
		return err
	}
	return errors.Join(transfer(ctx, file, content), file.Close())
}
