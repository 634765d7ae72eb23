package fake

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// draftSuffix is the suffix of the temporary file that receives the content before the final rename. A killed process
// leaves such a file behind, and the next write of the same file reuses the name.
const draftSuffix = ".wmco-tmp"

// draft is a file being written.
type draft struct {
	drive   *drive
	path    string // of the file
	options host.WriteOptions
	node    *node // of the draft; nil in a mounted directory
	real    string
	data    []byte
}

// startDraft starts to write a file.
func (d *drive) startDraft(path string, options host.WriteOptions) (*draft, error) {
	if options.Append {
		if at, err := d.resolvePath(path, true); err == nil { // Windows opens the target of a link
			path = at.fullPath()
		}
	}
	if _, err := d.resolveWritable(path, options); err != nil {
		return nil, err
	}
	draft := &draft{drive: d, path: path, options: options}
	at, err := d.resolvePath(strings.TrimRight(path, `\/`)+draftSuffix, false)
	switch {
	case err != nil:
		return nil, err
	case at.isDirectory():
		return nil, errExists
	case at.mount != nil:
		draft.real = at.real
		return draft, os.WriteFile(at.real, nil, 0o600)
	case at.node != nil:
		d.dropNode(at.node)
	}
	draft.node = d.addNode(at.parent, at.lastName(), options.Access)
	return draft, nil
}

// resolveWritable resolves the path of a file to be written.
func (d *drive) resolveWritable(path string, options host.WriteOptions) (resolvedPath, error) {
	at, err := d.resolvePath(path, false)
	switch {
	case err != nil:
		return at, err
	case at.isDirectory():
		return at, errDenied
	case options.Exclusive && at.hasEntry():
		return at, errExists
	case at.node != nil:
		return at, at.node.checkUnused()
	}
	return at, nil
}

func (w *draft) appendData(data []byte) error {
	if int64(len(data)) > w.drive.freeBytes() {
		return fmt.Errorf("%s, %d bytes written: %w", w.path, len(w.data), errDiskFull)
	}
	w.data = append(withCapacity(w.data, len(data)), data...)
	w.drive.pendingBytes += int64(len(data))
	return nil
}

// withCapacity returns data with spare capacity for more bytes. The capacity doubles, unlike in append, which grows
// by a quarter: files of megabytes arrive in chunks of some kilobytes.
func withCapacity(data []byte, more int) []byte {
	if len(data)+more <= cap(data) {
		return data
	}
	return slices.Grow(data, max(more, cap(data)))
}

// commitFile renames the draft to its final path.
func (w *draft) commitFile() error {
	at, err := w.drive.resolveWritable(w.path, w.options)
	if err != nil {
		return err
	}
	if w.options.Append && at.hasEntry() {
		if err := w.prependContent(at); err != nil {
			return err
		}
	}
	if at.mount != nil {
		return w.commitMounted(at)
	}
	w.keepDraft()
	if at.node != nil {
		w.drive.dropNode(at.node)
	}
	name := at.lastName()
	if at.node != nil {
		name = at.node.name
	}
	w.node.removeFromParent()
	w.node.addToParent(at.parent, name)
	return nil
}

// prependContent inserts the current content of the file before the added data.
func (w *draft) prependContent(at resolvedPath) error {
	var (
		present []byte
		access  host.Access
	)
	if at.node != nil {
		access = at.node.access
		if at.node.content != nil {
			present = at.node.content.data
		}
	} else {
		data, err := os.ReadFile(at.real)
		if err != nil {
			return err
		}
		present, access = data, w.drive.fileInfo(at).Access
	}
	w.data = append(slices.Clone(present), w.data...)
	w.drive.pendingBytes += int64(len(present))
	w.options.Access = access
	if w.node != nil {
		w.node.access = access
	}
	return nil
}

func (w *draft) commitMounted(at resolvedPath) error {
	var mode fs.FileMode = 0o644
	if w.options.Access == host.AccessAdministrators {
		mode = 0o600
	}
	if err := os.WriteFile(w.real, w.data, mode); err != nil {
		return err
	}
	if err := os.Chmod(w.real, mode); err != nil {
		return err
	}
	w.drive.pendingBytes -= int64(len(w.data))
	at.mount.setAccess(at.fullPath(), w.options.Access)
	return os.Rename(w.real, at.real)
}

// keepDraft keeps the draft in its current state, as the death of the writer does.
func (w *draft) keepDraft() {
	w.drive.pendingBytes -= int64(len(w.data))
	if w.node != nil {
		w.drive.setContent(w.node, w.drive.contents.internContent(w.data))
	}
	w.data = nil
}

func (w *draft) removeDraft() {
	w.drive.pendingBytes -= int64(len(w.data))
	w.data = nil
	if w.node == nil {
		_ = os.Remove(w.real) // best effort: the write has already failed
		return
	}
	if w.node.parent.children[foldCase(w.node.name)] == w.node {
		w.drive.dropNode(w.node)
	}
}
