package fake

import (
	"io/fs"
	"os"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// resolvedPath is a resolved path. Its directory exists, but the entry itself may not.
type resolvedPath struct {
	names  []string // from the root, in the stored case where they exist
	parent *node    // directory in memory; nil for the root and in mounts
	node   *node    // in memory; nil if the entry does not exist

	mount *mount // set in a mounted directory
	real  string
	found fs.FileInfo // of the real file, links not followed; nil if it does not exist
}

func (p resolvedPath) fullPath() string { return joinPath(p.names) }
func (p resolvedPath) lastName() string { return p.names[len(p.names)-1] }
func (p resolvedPath) hasEntry() bool   { return p.node != nil || p.found != nil }

func (p resolvedPath) isDirectory() bool {
	return p.node != nil && p.node.isDirectory() || p.found != nil && p.found.IsDir()
}

// resolvePath resolves a path. Links in parent directories are always followed, a final link only if follow is set.
func (d *drive) resolvePath(path string, follow bool) (resolvedPath, error) {
	names, err := splitPath(path)
	if err != nil {
		return resolvedPath{}, err
	}
	for range maxLinks {
		at, onward, err := d.walkPath(names, follow)
		if err != nil || onward == nil {
			return at, err
		}
		names = onward
	}
	return resolvedPath{}, errLinks
}

// resolveExisting is like resolvePath but returns an error if the entry does not exist.
func (d *drive) resolveExisting(path string, follow bool) (resolvedPath, error) {
	at, err := d.resolvePath(path, follow)
	if err == nil && !at.hasEntry() {
		err = errNotFound
	}
	return at, err
}

// walkPath descends from the root to the end of the path or to the first link to follow; onward is then the path to
// continue with.
func (d *drive) walkPath(names []string, follow bool) (at resolvedPath, onward []string, err error) {
	here := d.root
	var stored []string
	for i, name := range names {
		last := i == len(names)-1
		if m := d.mountAt(names[:i+1]); m != nil {
			return m.walkPath(names[i+1:], follow)
		}
		if !here.isDirectory() {
			return resolvedPath{}, nil, errPathNotFound
		}
		child := here.children[foldCase(name)]
		switch {
		case child == nil && last:
			return resolvedPath{names: append(stored, name), parent: here}, nil, nil
		case child == nil:
			return resolvedPath{}, nil, errPathNotFound
		case child.link != "" && (!last || follow):
			onward, err := linkDestination(stored, child.link)
			return resolvedPath{}, append(onward, names[i+1:]...), err
		}
		here, stored = child, append(stored, child.name)
	}
	return resolvedPath{names: stored, parent: here.parent, node: here}, nil, nil
}

// walkPath descends from the real directory of the mount.
func (m *mount) walkPath(names []string, follow bool) (at resolvedPath, onward []string, err error) {
	onDisk, stored := m.real, m.names
	for i := 0; ; i++ {
		last := i == len(names)
		found, err := m.statReal(onDisk)
		missing := os.IsNotExist(err)
		if err != nil && !missing {
			return resolvedPath{}, nil, err
		}
		switch {
		case missing && !last:
			return resolvedPath{}, nil, errPathNotFound
		case missing:
			return resolvedPath{names: stored, mount: m, real: onDisk}, nil, nil
		case found.Mode()&fs.ModeSymlink != 0 && (!last || follow):
			onward, err := linkDestination(stored[:len(stored)-1], m.linkTarget(onDisk))
			return resolvedPath{}, append(onward, names[i:]...), err
		case last:
			return resolvedPath{names: stored, mount: m, real: onDisk, found: found}, nil, nil
		case !found.IsDir():
			return resolvedPath{}, nil, errPathNotFound
		}
		onDisk = m.childPath(onDisk, names[i])
		stored = append(stored[:len(stored):len(stored)], onDisk[strings.LastIndexByte(onDisk, os.PathSeparator)+1:])
	}
}

func (d *drive) fileInfo(at resolvedPath) host.FileInfo {
	if at.mount != nil {
		return at.mount.fileInfo(at)
	}
	return at.node.fileInfo()
}
