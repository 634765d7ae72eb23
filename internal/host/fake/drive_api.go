package fake

import (
	"io/fs"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Drive is C: for callers outside the machine's processes: the SFTP server and tests. It also works while the machine
// is off. Paths and errors are as in host.Files.
type Drive struct{ machine *Machine }

// Drive returns C: for callers outside the machine's processes.
func (m *Machine) Drive() *Drive { return &Drive{m} }

func (d *Drive) runLocked(op, path string, action func(*drive) error) error {
	d.machine.lock()
	defer d.machine.unlock()
	return pathError(op, path, action(d.machine.drive))
}

func (d *Drive) runChange(op, path string, action func(*drive) error) error {
	return d.runLocked(op, path, func(drive *drive) error {
		err := action(drive)
		if err == nil {
			d.machine.journal.Append(KindFile, op+" "+path, 0)
		}
		return err
	})
}

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// Space returns the size and the free space of C:, in bytes.
func (d *Drive) Space() (size, free int64) {
	d.machine.lock()
	defer d.machine.unlock()
	return max(0, d.machine.drive.capacity), d.machine.drive.freeBytes()
}

// Stat returns the information of an entry without following links.
func (d *Drive) Stat(path string) (info host.FileInfo, err error) {
	err = d.runLocked("stat", path, func(drive *drive) error { info, err = drive.statPath(path); return err })
	return info, err
}

// ReadDir lists a directory, sorted by name.
func (d *Drive) ReadDir(path string) (infos []host.FileInfo, err error) {
	err = d.runLocked("read", path, func(drive *drive) error { infos, err = drive.readDir(path); return err })
	return infos, err
}

// Open opens a file for reading and follows links. The content is a snapshot at the time of the call.
func (d *Drive) Open(path string) (reader *FileReader, err error) {
	err = d.runLocked("open", path, func(drive *drive) error { reader, err = drive.openFile(path); return err })
	return reader, err
}

// ReadFile returns the content of a file.
func (d *Drive) ReadFile(path string) ([]byte, error) {
	reader, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	return reader.readRest(), nil
}

// WriteFile creates or replaces a file in one step.
func (d *Drive) WriteFile(path string, data []byte) error {
	return d.runLocked("write", path, func(drive *drive) error {
		draft, err := drive.startDraft(path, host.WriteOptions{})
		if err != nil {
			return err
		}
		if err = draft.appendData(data); err == nil {
			err = draft.commitFile()
		}
		if err != nil {
			draft.removeDraft()
			return err
		}
		d.machine.journal.Append(KindWrite, path, int64(len(data)))
		return nil
	})
}

// OpenWriter opens a file for writing at any offset and follows links. A missing file is created.
func (d *Drive) OpenWriter(path string, options OpenWriterOptions) (writer *FileWriter, err error) {
	err = d.runLocked("open", path, func(drive *drive) error {
		writer, err = drive.openWriter(d.machine, path, options)
		return err
	})
	if err != nil {
		return nil, err
	}
	return writer, nil
}

// Mkdir creates one directory. It returns ErrExist if the path exists.
func (d *Drive) Mkdir(path string) error {
	return d.runChange("mkdir", path, func(drive *drive) error {
		if at, err := drive.resolvePath(path, false); err == nil && at.hasEntry() {
			return errExists
		}
		_, err := drive.makeDirectory(path, host.AccessInherited)
		return err
	})
}

// MkdirAll creates a directory and its parents. Existing directories are not an error.
func (d *Drive) MkdirAll(path string) error {
	return d.runLocked("mkdir", path, func(drive *drive) error {
		names, err := splitPath(path)
		if err != nil {
			return err
		}
		for i := range names {
			above := joinPath(names[:i+1])
			if at, err := drive.resolveExisting(above, true); err == nil && at.isDirectory() {
				continue
			}
			if _, err := drive.makeDirectory(above, host.AccessInherited); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetOwner sets a user of the host as the owner of the entry at a path, as if the user had created the entry.
func (d *Drive) SetOwner(user, path string) error {
	return d.runLocked("give", path, func(drive *drive) error {
		at, err := drive.resolveExisting(path, false)
		if err == nil && at.node == nil {
			err = errDenied // a mounted directory has no owner
		}
		if err == nil {
			at.node.owner, at.node.access = user, host.AccessInherited
		}
		return err
	})
}

// OpenToAll removes the access list of the entry at a path, which grants everyone full access.
func (d *Drive) OpenToAll(path string) error {
	return d.runLocked("open to all", path, func(drive *drive) error {
		at, err := drive.resolveExisting(path, false)
		if err == nil && at.node == nil {
			err = errDenied // a mounted directory has no access list
		}
		if err == nil {
			at.node.open, at.node.access = true, host.AccessInherited
		}
		return err
	})
}

// Remove removes a file, a link or an empty directory.
func (d *Drive) Remove(path string) error {
	return d.runChange("remove", path, func(drive *drive) error { return drive.removePath(path) })
}

// RemoveAll removes an entry and its descendants. A missing entry is not an error.
func (d *Drive) RemoveAll(path string) error {
	return d.runChange("remove", path, func(drive *drive) error { _, err := drive.removeAll(path); return err })
}

// Rename moves an entry and replaces an existing file.
func (d *Drive) Rename(from, to string) error {
	return d.runChange("rename", from, func(drive *drive) error { return drive.renamePath(from, to) })
}

// Symlink creates or replaces a symbolic link.
func (d *Drive) Symlink(target, link string) error {
	return d.runChange("link", link, func(drive *drive) error { return drive.createSymlink(target, link) })
}

// Junction creates a junction to a directory, as any user may. Unlike the agent, an SFTP server reports the junction
// as a directory.
func (d *Drive) Junction(target, link string) error {
	return d.runChange("link", link, func(drive *drive) error {
		if err := drive.createSymlink(target, link); err != nil {
			return err
		}
		at, err := drive.resolveExisting(link, false)
		if err == nil {
			at.node.junction = true
		}
		return err
	})
}

// IsJunction reports whether the path is a junction.
func (d *Drive) IsJunction(path string) (is bool) {
	_ = d.runLocked("stat", path, func(drive *drive) error {
		at, err := drive.resolveExisting(path, false)
		is = err == nil && at.node.junction
		return err
	})
	return is
}

// RealName returns the path with all links resolved and names in stored case, for SFTP's realpath.
func (d *Drive) RealName(path string) (stored string, err error) {
	err = d.runLocked("resolve", path, func(drive *drive) error {
		at, err := drive.resolveExisting(path, true)
		stored = strings.TrimSuffix(at.fullPath(), `\`)
		if len(at.names) == 0 {
			stored = `C:\`
		}
		return err
	})
	return stored, err
}
