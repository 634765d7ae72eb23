package fake

import (
	"io/fs"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Drive is C: for callers that are no process of the machine: the SFTP server and tests. It works also while the
// machine is off. Paths and errors are like those in host.Files.
type Drive struct{ machine *Machine }

// Drive is C: for callers that are no process of the machine.
func (m *Machine) Drive() *Drive { return &Drive{m} }

func (d *Drive) locked(op, path string, action func(*drive) error) error {
	d.machine.lock()
	defer d.machine.unlock()
	return pathError(op, path, action(d.machine.drive))
}

func (d *Drive) changed(op, path string, action func(*drive) error) error {
	return d.locked(op, path, func(drive *drive) error {
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

// Space returns the size of C: and how much of it is free, in bytes.
func (d *Drive) Space() (size, free int64) {
	d.machine.lock()
	defer d.machine.unlock()
	return max(0, d.machine.drive.capacity), d.machine.drive.free()
}

// Stat describes an entry, links not followed.
func (d *Drive) Stat(path string) (info host.FileInfo, err error) {
	err = d.locked("stat", path, func(drive *drive) error { info, err = drive.stat(path); return err })
	return info, err
}

// ReadDir lists a folder, sorted by name.
func (d *Drive) ReadDir(path string) (infos []host.FileInfo, err error) {
	err = d.locked("read", path, func(drive *drive) error { infos, err = drive.readDir(path); return err })
	return infos, err
}

// Open reads a file, following links; the content is the one at the time of the call.
func (d *Drive) Open(path string) (reader *FileReader, err error) {
	err = d.locked("open", path, func(drive *drive) error { reader, err = drive.open(path); return err })
	return reader, err
}

// ReadFile returns the content of a file.
func (d *Drive) ReadFile(path string) ([]byte, error) {
	reader, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	return reader.rest(), nil
}

// WriteFile makes or replaces a file in one step.
func (d *Drive) WriteFile(path string, data []byte) error {
	return d.locked("write", path, func(drive *drive) error {
		draft, err := drive.draft(path, host.WriteOptions{})
		if err != nil {
			return err
		}
		if err = draft.add(data); err == nil {
			err = draft.commit()
		}
		if err != nil {
			draft.discard()
			return err
		}
		d.machine.journal.Append(KindWrite, path, int64(len(data)))
		return nil
	})
}

// OpenWriter opens a file for writing at any offset, following links; the file is made when it is not there.
func (d *Drive) OpenWriter(path string, options OpenWriterOptions) (writer *FileWriter, err error) {
	err = d.locked("open", path, func(drive *drive) error {
		writer, err = drive.openWriter(d.machine, path, options)
		return err
	})
	if err != nil {
		return nil, err
	}
	return writer, nil
}

// Mkdir makes one folder. It fails with ErrExist when something is there.
func (d *Drive) Mkdir(path string) error {
	return d.changed("mkdir", path, func(drive *drive) error {
		if at, err := drive.resolve(path, false); err == nil && at.exists() {
			return errExists
		}
		_, err := drive.mkdir(path, host.AccessInherited)
		return err
	})
}

// MkdirAll makes a folder and those above it; no error when they are there.
func (d *Drive) MkdirAll(path string) error {
	return d.locked("mkdir", path, func(drive *drive) error {
		names, err := splitPath(path)
		if err != nil {
			return err
		}
		for i := range names {
			above := joinPath(names[:i+1])
			if at, err := drive.existing(above, true); err == nil && at.directory() {
				continue
			}
			if _, err := drive.mkdir(above, host.AccessInherited); err != nil {
				return err
			}
		}
		return nil
	})
}

// GiveTo makes a user of the host the owner of what is at a path, as of what that user has made.
func (d *Drive) GiveTo(user, path string) error {
	return d.locked("give", path, func(drive *drive) error {
		at, err := drive.existing(path, false)
		if err == nil && at.node == nil {
			err = errDenied // a mounted folder has no owner
		}
		if err == nil {
			at.node.owner, at.node.access = user, host.AccessInherited
		}
		return err
	})
}

// OpenToAll takes away the access list of what is at a path: everyone may do everything with it.
func (d *Drive) OpenToAll(path string) error {
	return d.locked("open to all", path, func(drive *drive) error {
		at, err := drive.existing(path, false)
		if err == nil && at.node == nil {
			err = errDenied // a mounted folder has no access list
		}
		if err == nil {
			at.node.open, at.node.access = true, host.AccessInherited
		}
		return err
	})
}

// Remove removes a file, link or empty folder.
func (d *Drive) Remove(path string) error {
	return d.changed("remove", path, func(drive *drive) error { return drive.remove(path) })
}

// RemoveAll removes an entry with all below; no error when it is not there.
func (d *Drive) RemoveAll(path string) error {
	return d.changed("remove", path, func(drive *drive) error { _, err := drive.removeAll(path); return err })
}

// Rename moves an entry, replacing a file that is there.
func (d *Drive) Rename(from, to string) error {
	return d.changed("rename", from, func(drive *drive) error { return drive.rename(from, to) })
}

// Symlink makes or replaces a symbolic link.
func (d *Drive) Symlink(target, link string) error {
	return d.changed("link", link, func(drive *drive) error { return drive.symlink(target, link) })
}

// Junction makes a junction to a folder, as any user may. Unlike the agent, an SFTP server shows it as a folder.
func (d *Drive) Junction(target, link string) error {
	return d.changed("link", link, func(drive *drive) error {
		if err := drive.symlink(target, link); err != nil {
			return err
		}
		at, err := drive.existing(link, false)
		if err == nil {
			at.node.junction = true
		}
		return err
	})
}

// IsJunction reports whether a junction is at the path.
func (d *Drive) IsJunction(path string) (is bool) {
	_ = d.locked("stat", path, func(drive *drive) error {
		at, err := drive.existing(path, false)
		is = err == nil && at.node.junction
		return err
	})
	return is
}

// RealName returns the path with every link followed and names in their stored case, as SFTP's realpath wants it.
func (d *Drive) RealName(path string) (stored string, err error) {
	err = d.locked("resolve", path, func(drive *drive) error {
		at, err := drive.existing(path, true)
		stored = strings.TrimSuffix(at.path(), `\`)
		if len(at.names) == 0 {
			stored = `C:\`
		}
		return err
	})
	return stored, err
}
