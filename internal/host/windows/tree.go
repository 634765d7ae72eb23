//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// tree implements host.Tree with Win32: CreateDirectoryW with the final permissions from the start, MoveFileExW, and
// Symlink of the standard library. Symlink calls CreateSymbolicLinkW with
// SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE if Windows supports this flag. The kind of the link (to a file or to
// a directory) depends on the target.
type tree struct{}

func (tree) MakeDirectory(ctx context.Context, path string, access host.Access) error {
	p, err := beginOperation(ctx, "mkdir", path)
	if err != nil {
		return err
	}
	return wrapFileError("mkdir", path, makeDirectory(p, access))
}

func makeDirectory(path drivePath, access host.Access) error {
	security, err := securityOf(access, true)
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(path.extendedPath())
	if err != nil {
		return err
	}
	err = windows.CreateDirectory(name, security)
	if !errors.Is(err, windows.ERROR_ALREADY_EXISTS) && !path.isRoot() {
		return err
	}
	found, err := findEntry(path)
	if err != nil {
		return err
	}
	if !found.isDirectory() {
		return windows.ERROR_ALREADY_EXISTS
	}
	return setDirectoryAccess(path, access)
}

func (tree) Symlink(ctx context.Context, target, link string) error {
	p, err := beginOperation(ctx, "symlink", link)
	if err != nil {
		return err
	}
	return wrapFileError("symlink", link, createSymlink(ctx, target, p))
}

// createSymlink creates a draft link and moves it to the final name, so that a reader finds the old or the new link.
// Windows cannot replace the old link if either link has the directory kind. In this case, the name is missing
// briefly.
func createSymlink(ctx context.Context, target string, link drivePath) error {
	if target == "" || link.isRoot() {
		return fmt.Errorf("%w: a link needs a target and a parent directory", fs.ErrInvalid)
	}
	if found, err := findEntry(link); err == nil && found.isDirectory() {
		return windows.ERROR_ALREADY_EXISTS
	}
	draft := link.siblingPath(link.baseName() + draftSuffix)
	if err := removeEntry(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, draft.String()); err != nil {
		var known *os.LinkError
		if errors.As(err, &known) {
			return known.Err
		}
		return err
	}
	err := moveEntry(ctx, draft, link, windows.MOVEFILE_REPLACE_EXISTING)
	if err != nil {
		_ = removeEntry(draft) // best effort: the link was not created
	}
	return err
}

func (tree) Rename(ctx context.Context, from, to string) error {
	source, err := beginOperation(ctx, "rename", from)
	if err != nil {
		return err
	}
	target, err := beginOperation(ctx, "rename", to)
	if err != nil {
		return err
	}
	if source.isRoot() || target.isRoot() {
		return wrapFileError("rename", from, windows.ERROR_ACCESS_DENIED)
	}
	if _, err := findEntry(source); err != nil {
		return wrapFileError("rename", from, err)
	}
	return wrapFileError("rename", from, moveEntry(ctx, source, target, windows.MOVEFILE_REPLACE_EXISTING))
}
