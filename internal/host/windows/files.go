//go:build windows

package windows

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// files implements host.Files with Win32. It calls CreateFileW instead of os.Open, which does not share the file for
// deletion and would therefore prevent replacement of the file during a read.
type files struct{}

func (files) Stat(ctx context.Context, path string) (host.FileInfo, error) {
	p, err := beginOperation(ctx, "stat", path)
	if err != nil {
		return host.FileInfo{}, err
	}
	info, err := statPath(p)
	return info, wrapFileError("stat", path, err)
}

func (files) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	p, err := beginOperation(ctx, "open", path)
	if err != nil {
		return nil, err
	}
	name, err := windows.UTF16PtrFromString(p.extendedPath())
	if err != nil {
		return nil, wrapFileError("open", path, err)
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_READ, shareAll, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_SEQUENTIAL_SCAN, 0)
	if err != nil {
		return nil, wrapFileError("open", path, err)
	}
	return os.NewFile(uintptr(handle), p.String()), nil
}

func (files) ReadDir(ctx context.Context, path string) ([]host.FileInfo, error) {
	p, err := beginOperation(ctx, "read", path)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(p.String())
	if err != nil {
		return nil, wrapFileError("read", path, err)
	}
	infos := make([]host.FileInfo, 0, len(entries))
	for _, each := range entries {
		info, err := statPath(p.childPath(each.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed in the meantime
		}
		if err != nil {
			return nil, wrapFileError("read", p.childPath(each.Name()).String(), err)
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b host.FileInfo) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return infos, nil
}

func (files) Remove(ctx context.Context, path string) error {
	p, err := beginOperation(ctx, "remove", path)
	if err != nil {
		return err
	}
	if p.isRoot() {
		return wrapFileError("remove", path, windows.ERROR_ACCESS_DENIED)
	}
	return wrapFileError("remove", path, removeAll(ctx, p))
}

func (files) Write(ctx context.Context, path string, content io.Reader, options host.WriteOptions) error {
	p, err := beginOperation(ctx, "write", path)
	if err != nil {
		return err
	}
	if options.Append {
		return wrapFileError("write", path, appendTo(ctx, p, content, options))
	}
	return wrapFileError("write", path, write(ctx, p, content, options))
}

// beginOperation starts every operation: it returns the parsed path, or an error if ctx is done or the path is invalid.
func beginOperation(ctx context.Context, op, path string) (drivePath, error) {
	if err := context.Cause(ctx); err != nil {
		return drivePath{}, &fs.PathError{Op: op, Path: path, Err: err}
	}
	p, err := parsePath(path)
	if err != nil {
		return drivePath{}, &fs.PathError{Op: op, Path: path, Err: err}
	}
	return p, nil
}
