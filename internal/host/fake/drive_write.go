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

// draft starts to write a file.
func (d *drive) draft(path string, options host.WriteOptions) (*draft, error) {
	if options.Append {
		if at, err := d.resolve(path, true); err == nil { // Windows opens the target of a link
			path = at.path()
		}
	}
	if _, err := d.writable(path, options); err != nil {
		return nil, err
	}
	draft := &draft{drive: d, path: path, options: options}
	at, err := d.resolve(strings.TrimRight(path, `\/`)+draftSuffix, false)
	switch {
	case err != nil:
		return nil, err
	case at.directory():
		return nil, errExists
	case at.mount != nil:
		draft.real = at.real
		return draft, os.WriteFile(at.real, nil, 0o600)
	case at.node != nil:
		d.drop(at.node)
	}
	draft.node = d.add(at.parent, at.name(), options.Access)
	return draft, nil
}

// writable resolves the path of a file to be written.
func (d *drive) writable(path string, options host.WriteOptions) (place, error) {
	at, err := d.resolve(path, false)
	switch {
	case err != nil:
		return at, err
	case at.directory():
		return at, errDenied
	case options.Exclusive && at.exists():
		return at, errExists
	case at.node != nil:
		return at, at.node.inUse()
	}
	return at, nil
}

func (w *draft) add(data []byte) error {
	if int64(len(data)) > w.drive.free() {
		return fmt.Errorf("%s, %d bytes written: %w", w.path, len(w.data), errDiskFull)
	}
	w.data = append(withRoom(w.data, len(data)), data...)
	w.drive.unborn += int64(len(data))
	return nil
}

// withRoom returns data with spare capacity for more bytes. The capacity doubles, unlike in append, which grows by a
// quarter: files of megabytes arrive in chunks of some kilobytes.
func withRoom(data []byte, more int) []byte {
	if len(data)+more <= cap(data) {
		return data
	}
	return slices.Grow(data, max(more, cap(data)))
}

// commit renames the draft to its final path.
func (w *draft) commit() error {
	at, err := w.drive.writable(w.path, w.options)
	if err != nil {
		return err
	}
	if w.options.Append && at.exists() {
		if err := w.prepend(at); err != nil {
			return err
		}
	}
	if at.mount != nil {
		return w.commitMounted(at)
	}
	w.leave()
	if at.node != nil {
		w.drive.drop(at.node)
	}
	name := at.name()
	if at.node != nil {
		name = at.node.name
	}
	w.node.detach()
	w.node.attach(at.parent, name)
	return nil
}

// prepend inserts the current content of the file before the added data.
func (w *draft) prepend(at place) error {
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
		present, access = data, w.drive.info(at).Access
	}
	w.data = append(slices.Clone(present), w.data...)
	w.drive.unborn += int64(len(present))
	w.options.Access = access
	if w.node != nil {
		w.node.access = access
	}
	return nil
}

func (w *draft) commitMounted(at place) error {
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
	w.drive.unborn -= int64(len(w.data))
	at.mount.setAccess(at.path(), w.options.Access)
	return os.Rename(w.real, at.real)
}

// leave keeps the draft in its current state, as the death of the writer does.
func (w *draft) leave() {
	w.drive.unborn -= int64(len(w.data))
	if w.node != nil {
		w.drive.fill(w.node, w.drive.contents.intern(w.data))
	}
	w.data = nil
}

func (w *draft) discard() {
	w.drive.unborn -= int64(len(w.data))
	w.data = nil
	if w.node == nil {
		_ = os.Remove(w.real) // best effort: the write has already failed
		return
	}
	if w.node.parent.children[key(w.node.name)] == w.node {
		w.drive.drop(w.node)
	}
}
