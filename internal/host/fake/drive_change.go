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
	at, err := d.existing(path, false)
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
		at.mount.forget(at.path())
		return true, os.RemoveAll(at.real)
	}
	for _, m := range d.mountsBelow(at.names) {
		m.forget(joinPath(m.names))
		if err := os.RemoveAll(m.real); err != nil {
			return false, err
		}
	}
	return true, d.prune(at.node)
}

func (d *drive) prune(n *node) error {
	if n.layer {
		return fmt.Errorf("%s is a layer with files of Windows: %w", n.path(), errDenied)
	}
	var inUse error
	for _, child := range n.children {
		if err := d.prune(child); err != nil {
			inUse = err
		}
	}
	if inUse == nil {
		inUse = n.inUse()
	}
	if inUse == nil {
		d.drop(n)
	}
	return inUse
}

// remove removes a file, a link or an empty directory.
func (d *drive) remove(path string) error {
	at, err := d.existing(path, false)
	if err != nil {
		return err
	}
	if len(at.names) == 0 {
		return errDenied
	}
	if at.mount != nil {
		at.mount.forget(at.path())
		return os.Remove(at.real)
	}
	if len(at.node.children) > 0 || len(d.mountsBelow(at.names)) > 0 {
		return errNotEmpty
	}
	return d.prune(at.node)
}

// rename moves an entry and replaces an existing file.
func (d *drive) rename(from, to string) error {
	source, err := d.existing(from, false)
	if err != nil {
		return err
	}
	target, err := d.resolve(to, false)
	switch {
	case err != nil:
		return err
	case len(source.names) == 0 || len(target.names) == 0:
		return errDenied
	case source.mount != nil || target.mount != nil:
		return d.renameMounted(source, target)
	case len(d.mountsBelow(source.names)) > 0:
		return fmt.Errorf("a folder below %s is mounted: %w", source.path(), host.ErrInUse)
	}
	if err := source.node.fixed(); err != nil {
		return err
	}
	for above := target.parent; above != nil; above = above.parent {
		if above == source.node {
			return errDenied
		}
	}
	if target.node != nil && target.node != source.node {
		if err := d.replaceable(target); err != nil {
			return err
		}
		d.drop(target.node)
	}
	source.node.detach()
	source.node.attach(target.parent, lastName(to))
	return nil
}

// replaceable returns an error if a rename cannot replace the target.
func (d *drive) replaceable(target place) error {
	if target.directory() {
		return errExists
	}
	return target.node.inUse()
}

// renameMounted moves an entry within a mounted directory, or a file into or out of a mounted directory.
func (d *drive) renameMounted(source, target place) error {
	if target.exists() && target.directory() {
		return errExists
	}
	if source.mount == target.mount {
		access := source.mount.access[key(source.path())]
		source.mount.forget(source.path())
		if access != "" {
			source.mount.setAccess(target.path(), access)
		}
		return os.Rename(source.real, target.real)
	}
	info := d.info(source)
	if info.Directory || info.LinkTarget != "" {
		return fmt.Errorf("%s: only files can be moved into or out of a mounted folder", info.Path)
	}
	reader, err := d.open(info.Path)
	if err != nil {
		return err
	}
	draft, err := d.draft(target.path(), host.WriteOptions{Access: info.Access})
	if err != nil {
		return err
	}
	if err := errors.Join(draft.add(reader.rest()), draft.commit()); err != nil {
		draft.discard()
		return err
	}
	return d.remove(info.Path)
}

// lastName returns the last name of a path in its given case.
func lastName(path string) string {
	names, _ := splitPath(path)
	return slices.Concat([]string{""}, names)[len(names)]
}
