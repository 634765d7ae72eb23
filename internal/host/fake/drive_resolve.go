package fake

import (
	"io/fs"
	"os"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// place is a resolved path. Its directory exists, but the entry itself may not.
type place struct {
	names  []string // from the root, in the stored case where they exist
	parent *node    // directory in memory; nil for the root and in mounts
	node   *node    // in memory; nil if the entry does not exist

	mount *mount // set in a mounted directory
	real  string
	found fs.FileInfo // of the real file, links not followed; nil if it does not exist
}

func (p place) path() string { return joinPath(p.names) }
func (p place) name() string { return p.names[len(p.names)-1] }
func (p place) exists() bool { return p.node != nil || p.found != nil }

func (p place) directory() bool {
	return p.node != nil && p.node.directory() || p.found != nil && p.found.IsDir()
}

// resolve resolves a path. Links in parent directories are always followed, a final link only if follow is set.
func (d *drive) resolve(path string, follow bool) (place, error) {
	names, err := splitPath(path)
	if err != nil {
		return place{}, err
	}
	for range maxLinks {
		at, onward, err := d.walk(names, follow)
		if err != nil || onward == nil {
			return at, err
		}
		names = onward
	}
	return place{}, errLinks
}

// existing is like resolve but returns an error if the entry does not exist.
func (d *drive) existing(path string, follow bool) (place, error) {
	at, err := d.resolve(path, follow)
	if err == nil && !at.exists() {
		err = errNotFound
	}
	return at, err
}

// walk descends from the root to the end of the path or to the first link to follow; onward is then the path to
// continue with.
func (d *drive) walk(names []string, follow bool) (at place, onward []string, err error) {
	here := d.root
	var stored []string
	for i, name := range names {
		last := i == len(names)-1
		if m := d.mountAt(names[:i+1]); m != nil {
			return m.walk(names[i+1:], follow)
		}
		if !here.directory() {
			return place{}, nil, errPathNotFound
		}
		child := here.children[key(name)]
		switch {
		case child == nil && last:
			return place{names: append(stored, name), parent: here}, nil, nil
		case child == nil:
			return place{}, nil, errPathNotFound
		case child.link != "" && (!last || follow):
			onward, err := linkDestination(stored, child.link)
			return place{}, append(onward, names[i+1:]...), err
		}
		here, stored = child, append(stored, child.name)
	}
	return place{names: stored, parent: here.parent, node: here}, nil, nil
}

// walk descends from the real directory of the mount.
func (m *mount) walk(names []string, follow bool) (at place, onward []string, err error) {
	onDisk, stored := m.real, m.names
	for i := 0; ; i++ {
		last := i == len(names)
		found, err := m.look(onDisk)
		missing := os.IsNotExist(err)
		if err != nil && !missing {
			return place{}, nil, err
		}
		switch {
		case missing && !last:
			return place{}, nil, errPathNotFound
		case missing:
			return place{names: stored, mount: m, real: onDisk}, nil, nil
		case found.Mode()&fs.ModeSymlink != 0 && (!last || follow):
			onward, err := linkDestination(stored[:len(stored)-1], m.linkTarget(onDisk))
			return place{}, append(onward, names[i:]...), err
		case last:
			return place{names: stored, mount: m, real: onDisk, found: found}, nil, nil
		case !found.IsDir():
			return place{}, nil, errPathNotFound
		}
		onDisk = m.child(onDisk, names[i])
		stored = append(stored[:len(stored):len(stored)], onDisk[strings.LastIndexByte(onDisk, os.PathSeparator)+1:])
	}
}

func (d *drive) info(at place) host.FileInfo {
	if at.mount != nil {
		return at.mount.info(at)
	}
	return at.node.info()
}
