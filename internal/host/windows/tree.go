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
	p, err := begin(ctx, "make folder", path)
	if err != nil {
		return err
	}
	return fault("make folder", path, makeDirectory(p, access))
}

func makeDirectory(path drivePath, access host.Access) error {
	security, err := securityOf(access, true)
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(path.extended())
	if err != nil {
		return err
	}
	err = windows.CreateDirectory(name, security)
	if !errors.Is(err, windows.ERROR_ALREADY_EXISTS) && !path.root() {
		return err
	}
	found, err := findEntry(path)
	if err != nil {
		return err
	}
	if !found.folder() {
		return windows.ERROR_ALREADY_EXISTS
	}
	return setFolderAccess(path, access)
}

func (tree) Symlink(ctx context.Context, target, link string) error {
	p, err := begin(ctx, "link", link)
	if err != nil {
		return err
	}
	return fault("link", link, symlink(ctx, target, p))
}

// symlink creates a draft link and moves it to the final name, so that a reader finds the old or the new link.
// Windows cannot replace the old link if either link has the directory kind. In this case, the name is missing
// briefly.
func symlink(ctx context.Context, target string, link drivePath) error {
	if target == "" || link.root() {
		return fmt.Errorf("%w: a link needs a target and a place in a folder", fs.ErrInvalid)
	}
	if found, err := findEntry(link); err == nil && found.folder() {
		return windows.ERROR_ALREADY_EXISTS
	}
	draft := link.sibling(link.name() + draftSuffix)
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
	err := move(ctx, draft, link, windows.MOVEFILE_REPLACE_EXISTING)
	if err != nil {
		_ = removeEntry(draft) // best effort: the link was not created
	}
	return err
}

func (tree) Rename(ctx context.Context, from, to string) error {
	source, err := begin(ctx, "rename", from)
	if err != nil {
		return err
	}
	target, err := begin(ctx, "rename", to)
	if err != nil {
		return err
	}
	if source.root() || target.root() {
		return fault("rename", from, windows.ERROR_ACCESS_DENIED)
	}
	if _, err := findEntry(source); err != nil {
		return fault("rename", from, err)
	}
	return fault("rename", from, move(ctx, source, target, windows.MOVEFILE_REPLACE_EXISTING))
}
