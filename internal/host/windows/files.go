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
	p, err := begin(ctx, "stat", path)
	if err != nil {
		return host.FileInfo{}, err
	}
	info, err := describe(p)
	return info, fault("stat", path, err)
}

func (files) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	p, err := begin(ctx, "open", path)
	if err != nil {
		return nil, err
	}
	name, err := windows.UTF16PtrFromString(p.extended())
	if err != nil {
		return nil, fault("open", path, err)
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_READ, shareAll, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_SEQUENTIAL_SCAN, 0)
	if err != nil {
		return nil, fault("open", path, err)
	}
	return os.NewFile(uintptr(handle), p.String()), nil
}

func (files) ReadDir(ctx context.Context, path string) ([]host.FileInfo, error) {
	p, err := begin(ctx, "read", path)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(p.String())
	if err != nil {
		return nil, fault("read", path, err)
	}
	infos := make([]host.FileInfo, 0, len(entries))
	for _, each := range entries {
		info, err := describe(p.child(each.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed in the meantime
		}
		if err != nil {
			return nil, fault("read", p.child(each.Name()).String(), err)
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b host.FileInfo) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return infos, nil
}

func (files) Remove(ctx context.Context, path string) error {
	p, err := begin(ctx, "remove", path)
	if err != nil {
		return err
	}
	if p.root() {
		return fault("remove", path, windows.ERROR_ACCESS_DENIED)
	}
	return fault("remove", path, removeAll(ctx, p))
}

func (files) Write(ctx context.Context, path string, content io.Reader, options host.WriteOptions) error {
	p, err := begin(ctx, "write", path)
	if err != nil {
		return err
	}
	if options.Append {
		return fault("write", path, appendTo(ctx, p, content, options))
	}
	return fault("write", path, write(ctx, p, content, options))
}

// begin starts every operation: it returns the parsed path, or an error if ctx is done or the path is invalid.
func begin(ctx context.Context, op, path string) (drivePath, error) {
	if err := context.Cause(ctx); err != nil {
		return drivePath{}, &fs.PathError{Op: op, Path: path, Err: err}
	}
	p, err := parsePath(path)
	if err != nil {
		return drivePath{}, &fs.PathError{Op: op, Path: path, Err: err}
	}
	return p, nil
}
