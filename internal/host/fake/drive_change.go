package fake

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// removeAll removes an entry and all descendants. As on Windows, entries in use and the directories above are kept
// while the rest is removed.
func (d *drive) removeAll(path string) (removed bool, err error) {
	at, err := d.resolveExisting(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if len(at.names) == 0 {
		return false, errDenied
	}
	if at.mount != nil {
		at.mount.forgetAccess(at.fullPath())
		return true, os.RemoveAll(at.real)
	}
	for _, m := range d.mountsBelow(at.names) {
		m.forgetAccess(joinPath(m.names))
		if err := os.RemoveAll(m.real); err != nil {
			return false, err
		}
	}
	return true, d.pruneTree(at.node)
}

func (d *drive) pruneTree(n *node) error {
	if n.layer {
		return fmt.Errorf("%s is a layer with files of Windows: %w", n.fullPath(), errDenied)
	}
	var inUse error
	for _, child := range n.children {
		if err := d.pruneTree(child); err != nil {
			inUse = err
		}
	}
	if inUse == nil {
		inUse = n.checkUnused()
	}
	if inUse == nil {
		d.dropNode(n)
	}
	return inUse
}

// removePath removes a file, a link or an empty directory.
func (d *drive) removePath(path string) error {
	at, err := d.resolveExisting(path, false)
	if err != nil {
		return err
	}
	if len(at.names) == 0 {
		return errDenied
	}
	if at.mount != nil {
		at.mount.forgetAccess(at.fullPath())
		return os.Remove(at.real)
	}
	if len(at.node.children) > 0 || len(d.mountsBelow(at.names)) > 0 {
		return errNotEmpty
	}
	return d.pruneTree(at.node)
}

// renamePath moves an entry and replaces an existing file.
func (d *drive) renamePath(from, to string) error {
	source, err := d.resolveExisting(from, false)
	if err != nil {
		return err
	}
	target, err := d.resolvePath(to, false)
	switch {
	case err != nil:
		return err
	case len(source.names) == 0 || len(target.names) == 0:
		return errDenied
	case source.mount != nil || target.mount != nil:
		return d.renameMounted(source, target)
	case len(d.mountsBelow(source.names)) > 0:
		return fmt.Errorf("%s contains a mounted directory: %w", source.fullPath(), host.ErrInUse)
	}
	if err := source.node.checkRenamable(); err != nil {
		return err
	}
	for above := target.parent; above != nil; above = above.parent {
		if above == source.node {
			return errDenied
		}
	}
	if target.node != nil && target.node != source.node {
		if err := d.checkReplaceable(target); err != nil {
			return err
		}
		d.dropNode(target.node)
	}
	source.node.removeFromParent()
	source.node.addToParent(target.parent, lastName(to))
	return nil
}

// checkReplaceable returns an error if a rename cannot replace the target.
func (d *drive) checkReplaceable(target resolvedPath) error {
	if target.isDirectory() {
		return errExists
	}
	return target.node.checkUnused()
}

// renameMounted moves an entry within a mounted directory, or a file into or out of a mounted directory.
func (d *drive) renameMounted(source, target resolvedPath) error {
	if target.hasEntry() && target.isDirectory() {
		return errExists
	}
	if source.mount == target.mount {
		access := source.mount.access[foldCase(source.fullPath())]
		source.mount.forgetAccess(source.fullPath())
		if access != "" {
			source.mount.setAccess(target.fullPath(), access)
		}
		return os.Rename(source.real, target.real)
	}
	info := d.fileInfo(source)
	if info.Directory || info.LinkTarget != "" {
		return fmt.Errorf("%s: only files can be moved into or out of a mounted directory", info.Path)
	}
	reader, err := d.openFile(info.Path)
	if err != nil {
		return err
	}
	draft, err := d.startDraft(target.fullPath(), host.WriteOptions{Access: info.Access})
	if err != nil {
		return err
	}
	if err := errors.Join(draft.appendData(reader.readRest()), draft.commitFile()); err != nil {
		draft.removeDraft()
		return err
	}
	return d.removePath(info.Path)
}

// lastName returns the last name of a path in its given case.
func lastName(path string) string {
	names, _ := splitPath(path)
	return slices.Concat([]string{""}, names)[len(names)]
}
