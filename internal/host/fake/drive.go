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
	root     *node
	mounts   []*mount
	contents *ContentStore
	clock    clock.PassiveClock
	capacity int64
	used     int64 // bytes of files in memory
	unborn   int64 // bytes being written that are not yet part of a file
	writers  map[*FileWriter]struct{}
}

func newDrive(contents *ContentStore, clock clock.PassiveClock, capacity int64) *drive {
	root := &node{name: `C:\`, children: map[string]*node{}, access: host.AccessInherited, modified: clock.Now()}
	return &drive{root: root, contents: contents, clock: clock, capacity: capacity, writers: map[*FileWriter]struct{}{}}
}

func (d *drive) free() int64 { return max(0, d.capacity-d.used-d.unborn) }

func (d *drive) add(parent *node, name string, access host.Access) *node {
	if access == "" {
		access = host.AccessInherited
	}
	n := &node{access: access, modified: d.clock.Now()}
	n.attach(parent, name)
	return n
}

func (d *drive) fill(n *node, c *content) {
	d.used -= n.size()
	n.content, n.modified = c, d.clock.Now()
	d.used += n.size()
}

// drop removes a node and its descendants from the drive.
func (d *drive) drop(n *node) {
	d.used -= n.total()
	n.detach()
}

func (n *node) total() int64 {
	sum := n.size()
	for _, child := range n.children {
		sum += child.total()
	}
	return sum
}

func (d *drive) stat(path string) (host.FileInfo, error) {
	at, err := d.existing(path, false)
	if err != nil {
		return host.FileInfo{}, err
	}
	return d.info(at), nil
}

func (d *drive) open(path string) (*FileReader, error) {
	at, err := d.existing(path, true)
	switch {
	case err != nil:
		return nil, err
	case at.directory():
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
	at, err := d.existing(path, true)
	if err != nil {
		return nil, err
	}
	if !at.directory() {
		return nil, errNotDirectory
	}
	var infos []host.FileInfo
	if at.mount != nil {
		infos, err = at.mount.list(at)
	} else {
		infos = d.list(at)
	}
	slices.SortFunc(infos, func(a, b host.FileInfo) int { return strings.Compare(key(a.Name), key(b.Name)) })
	return infos, err
}

func (d *drive) list(at place) []host.FileInfo {
	infos := make([]host.FileInfo, 0, len(at.node.children))
	for _, child := range at.node.children {
		infos = append(infos, child.info())
	}
	for _, m := range d.mountsBelow(at.names) {
		if len(m.names) != len(at.names)+1 {
			continue
		}
		if found, err := os.Stat(m.real); err == nil {
			infos = append(infos, m.info(place{names: m.names, mount: m, real: m.real, found: found}))
		}
	}
	return infos
}

// mkdir creates a directory; made is false if the directory exists and only its access was set.
func (d *drive) mkdir(path string, access host.Access) (made bool, err error) {
	at, err := d.resolve(path, false)
	if err != nil {
		return false, err
	}
	if at.exists() && !at.directory() {
		return false, errExists
	}
	if at.mount != nil {
		made = !at.exists()
		if err := os.Mkdir(at.real, 0o755); made && err != nil {
			return false, err
		}
		at.mount.setAccess(at.path(), access)
		return made, nil
	}
	if at.exists() {
		at.node.access = access
		if access.Closed() {
			at.node.owner, at.node.open = "", false // removes the user's ownership
		}
		return false, nil
	}
	d.add(at.parent, at.name(), access).children = map[string]*node{}
	return true, nil
}

func (d *drive) symlink(target, link string) error {
	if target == "" {
		return errName
	}
	at, err := d.resolve(link, false)
	if err != nil {
		return err
	}
	if at.directory() {
		return errExists
	}
	if at.mount != nil {
		return at.mount.symlink(target, at)
	}
	if at.node != nil {
		if err := at.node.inUse(); err != nil {
			return err
		}
		d.drop(at.node)
	}
	d.add(at.parent, at.name(), host.AccessInherited).link = target
	return nil
}

func (m *mount) symlink(target string, at place) error {
	target, err := m.realTarget(target)
	if err != nil {
		return err
	}
	if err := os.Remove(at.real); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, at.real)
}
