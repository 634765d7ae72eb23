package fake

import (
	"fmt"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// node is a file, directory or symbolic link in memory.
type node struct {
	name     string
	parent   *node
	children map[string]*node // by key; nil unless a directory
	content  *content         // of files
	link     string           // target, of links
	junction bool             // the link is a junction
	access   host.Access
	owner    string // a user of the host; empty for Administrators
	open     bool   // no access list: everyone may change the node and its permissions
	layer    bool   // layer of a container, with content owned by Windows
	modified time.Time
	holds    map[*hold]struct{}
}

// hold is a process or handle that keeps a file in use.
type hold struct {
	node *node
	by   string
	// image is set for a running executable: the file may be renamed, but neither replaced nor removed.
	image bool
	// shared is set for programs that let others read and write the file, as for an open log.
	shared bool
	// mapped is set for programs that map the file into memory: the file cannot be truncated.
	mapped bool
}

func (n *node) isDirectory() bool { return n.children != nil }

func (n *node) contentSize() int64 {
	if n.content == nil {
		return 0
	}
	return int64(len(n.content.data))
}

func (n *node) pathNames() []string {
	var names []string
	for at := n; at.parent != nil; at = at.parent {
		names = append(names, at.name)
	}
	slices.Reverse(names)
	return names
}

func (n *node) fullPath() string { return joinPath(n.pathNames()) }

func (n *node) addHold(by string, image bool) *hold {
	if n.holds == nil {
		n.holds = map[*hold]struct{}{}
	}
	h := &hold{node: n, by: by, image: image}
	n.holds[h] = struct{}{}
	return h
}

func (h *hold) releaseNode() { delete(h.node.holds, h) }

// checkUnused returns an error if the node or a descendant is held.
func (n *node) checkUnused() error {
	for h := range n.holds {
		return h.inUseError()
	}
	for _, child := range n.children {
		if err := child.checkUnused(); err != nil {
			return err
		}
	}
	return nil
}

// checkWritable returns an error if a hold prevents writing the file in place.
func (n *node) checkWritable() error {
	for h := range n.holds {
		if !h.shared {
			return h.inUseError()
		}
	}
	return nil
}

// checkTruncatable returns an error if a hold prevents emptying the file.
func (n *node) checkTruncatable() error {
	for h := range n.holds {
		if h.mapped {
			return h.inUseError()
		}
	}
	return n.checkWritable()
}

// checkRenamable returns an error if the node cannot be renamed: of all held files, Windows renames only running
// executables.
func (n *node) checkRenamable() error {
	if n.isDirectory() {
		return n.checkUnused()
	}
	for h := range n.holds {
		if !h.image {
			return h.inUseError()
		}
	}
	return nil
}

func (h *hold) inUseError() error {
	return fmt.Errorf("%s is held by %s: %w", h.node.fullPath(), h.by, host.ErrInUse)
}

func (n *node) fileInfo() host.FileInfo {
	return host.FileInfo{
		Path: n.fullPath(), Name: n.name, Directory: n.isDirectory(), Size: n.contentSize(), Modified: n.modified,
		LinkTarget: n.link, Access: n.access, Foreign: n.owner != "" || n.open,
	}
}

func (n *node) addToParent(parent *node, name string) {
	n.parent, n.name = parent, name
	parent.children[foldCase(name)] = n
}

func (n *node) removeFromParent() { delete(n.parent.children, foldCase(n.name)) }
