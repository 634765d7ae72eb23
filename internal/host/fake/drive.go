package fake

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
)

// drive is C:, guarded by the machine's lock.
type drive struct {
	root         *node
	mounts       []*mount
	contents     *ContentStore
	clock        clock.PassiveClock
	capacity     int64
	used         int64 // bytes of files in memory
	pendingBytes int64 // bytes being written that are not yet part of a file
	writers      map[*FileWriter]struct{}
}

func newDrive(contents *ContentStore, clock clock.PassiveClock, capacity int64) *drive {
	root := &node{name: `C:\`, children: map[string]*node{}, access: host.AccessInherited, modified: clock.Now()}
	return &drive{root: root, contents: contents, clock: clock, capacity: capacity, writers: map[*FileWriter]struct{}{}}
}

func (d *drive) freeBytes() int64 { return max(0, d.capacity-d.used-d.pendingBytes) }

func (d *drive) addNode(parent *node, name string, access host.Access) *node {
	if access == "" {
		access = host.AccessInherited
	}
	n := &node{access: access, modified: d.clock.Now()}
	n.addToParent(parent, name)
	return n
}

func (d *drive) setContent(n *node, c *content) {
	d.used -= n.contentSize()
	n.content, n.modified = c, d.clock.Now()
	d.used += n.contentSize()
}

// dropNode removes a node and its descendants from the drive.
func (d *drive) dropNode(n *node) {
	d.used -= n.totalSize()
	n.removeFromParent()
}

func (n *node) totalSize() int64 {
	sum := n.contentSize()
	for _, child := range n.children {
		sum += child.totalSize()
	}
	return sum
}

func (d *drive) statPath(path string) (host.FileInfo, error) {
	at, err := d.resolveExisting(path, false)
	if err != nil {
		return host.FileInfo{}, err
	}
	return d.fileInfo(at), nil
}

func (d *drive) openFile(path string) (*FileReader, error) {
	at, err := d.resolveExisting(path, true)
	switch {
	case err != nil:
		return nil, err
	case at.isDirectory():
		return nil, errDenied
	case at.mount != nil:
		data, err := os.ReadFile(at.real)
		return newFileReader(data), err
	case at.node.content == nil:
		return newFileReader(nil), nil
	}
	return newFileReader(at.node.content.data), nil
}

func (d *drive) readDir(path string) ([]host.FileInfo, error) {
	at, err := d.resolveExisting(path, true)
	if err != nil {
		return nil, err
	}
	if !at.isDirectory() {
		return nil, errNotDirectory
	}
	var infos []host.FileInfo
	if at.mount != nil {
		infos, err = at.mount.list(at)
	} else {
		infos = d.list(at)
	}
	slices.SortFunc(infos, func(a, b host.FileInfo) int { return strings.Compare(foldCase(a.Name), foldCase(b.Name)) })
	return infos, err
}

func (d *drive) list(at resolvedPath) []host.FileInfo {
	infos := make([]host.FileInfo, 0, len(at.node.children))
	for _, child := range at.node.children {
		infos = append(infos, child.fileInfo())
	}
	for _, m := range d.mountsBelow(at.names) {
		if len(m.names) != len(at.names)+1 {
			continue
		}
		if found, err := os.Stat(m.real); err == nil {
			infos = append(infos, m.fileInfo(resolvedPath{names: m.names, mount: m, real: m.real, found: found}))
		}
	}
	return infos
}

// makeDirectory creates a directory; made is false if the directory exists and only its access was set.
func (d *drive) makeDirectory(path string, access host.Access) (made bool, err error) {
	at, err := d.resolvePath(path, false)
	if err != nil {
		return false, err
	}
	if at.hasEntry() && !at.isDirectory() {
		return false, errExists
	}
	if at.mount != nil {
		made = !at.hasEntry()
		if err := os.Mkdir(at.real, 0o755); made && err != nil {
			return false, err
		}
		at.mount.setAccess(at.fullPath(), access)
		return made, nil
	}
	if at.hasEntry() {
		at.node.access = access
		if access.IsRestricted() {
			at.node.owner, at.node.open = "", false // removes the user's ownership
		}
		return false, nil
	}
	d.addNode(at.parent, at.lastName(), access).children = map[string]*node{}
	return true, nil
}

func (d *drive) createSymlink(target, link string) error {
	if target == "" {
		return errName
	}
	at, err := d.resolvePath(link, false)
	if err != nil {
		return err
	}
	if at.isDirectory() {
		return errExists
	}
	if at.mount != nil {
		return at.mount.createSymlink(target, at)
	}
	if at.node != nil {
		if err := at.node.checkUnused(); err != nil {
			return err
		}
		d.dropNode(at.node)
	}
	d.addNode(at.parent, at.lastName(), host.AccessInherited).link = target
	return nil
}

func (m *mount) createSymlink(target string, at resolvedPath) error {
	target, err := m.realTarget(target)
	if err != nil {
		return err
	}
	if err := os.Remove(at.real); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, at.real)
}
