package fake

import (
	"context"
	"fmt"
	"io"

	"github.com/windows-machine-config/wmco/internal/host"
)

// files implements host.Files for one process.
type files struct{ p *Process }

func (f files) runOperation(ctx context.Context, method, path string, action func(*drive) error) error {
	return f.p.runOperation(ctx, "Files", method, path, func(m *Machine) error { return pathError(method, path, action(m.drive)) })
}

func (f files) Stat(ctx context.Context, path string) (info host.FileInfo, err error) {
	err = f.runOperation(ctx, "Stat", path, func(d *drive) error { info, err = d.statPath(path); return err })
	return info, err
}

func (f files) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	var reader *FileReader
	err := f.runOperation(ctx, "Open", path, func(d *drive) (err error) { reader, err = d.openFile(path); return err })
	if err != nil {
		return nil, err
	}
	return reader, nil
}

func (f files) ReadDir(ctx context.Context, path string) (infos []host.FileInfo, err error) {
	err = f.runOperation(ctx, "ReadDir", path, func(d *drive) error { infos, err = d.readDir(path); return err })
	return infos, err
}

func (f files) Remove(ctx context.Context, path string) error {
	return f.runOperation(ctx, "Remove", path, func(d *drive) error {
		removed, err := d.removeAll(path)
		if removed {
			f.p.recordEntry(KindFile, "remove "+path, 0)
		}
		return err
	})
}

func (f files) Write(ctx context.Context, path string, content io.Reader, options host.WriteOptions) error {
	var w *draft
	err := f.runOperation(ctx, "Write", path, func(d *drive) (err error) { w, err = d.startDraft(path, options); return err })
	if err != nil {
		return err
	}
	err = f.copyContent(ctx, w, content)
	if err == nil {
		err = f.p.runLocked(func(m *Machine) error {
			size := int64(len(w.data))
			if err := w.commitFile(); err != nil {
				return err
			}
			f.p.recordEntry(KindWrite, path, size)
			return nil
		})
	}
	if err != nil {
		f.abandonDraft(w)
	}
	return pathError("Write", path, err)
}

// copyContent copies the content into the draft. The content is external code, so the machine is not locked during
// reads.
func (f files) copyContent(ctx context.Context, w *draft, content io.Reader) error {
	buffer := make([]byte, 64<<10)
	for {
		n, readErr := content.Read(buffer)
		if err := ctx.Err(); err != nil {
			return err
		}
		if n > 0 {
			if err := f.p.runLocked(func(*Machine) error { return w.appendData(buffer[:n]) }); err != nil {
				return err
			}
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return fmt.Errorf("read the content to write: %w", readErr)
		}
	}
}

// abandonDraft cleans up after a failed write, unless the process is dead.
func (f files) abandonDraft(w *draft) {
	m := f.p.Machine
	m.lock()
	defer m.unlock()
	if f.p.checkAlive() == nil {
		w.removeDraft()
	} else {
		w.keepDraft()
	}
}

// tree implements host.Tree for one process.
type tree struct{ p *Process }

func (t tree) runOperation(ctx context.Context, method, path string, action func(*drive) error) error {
	return t.p.runOperation(ctx, "Tree", method, path, func(m *Machine) error { return pathError(method, path, action(m.drive)) })
}

func (t tree) MakeDirectory(ctx context.Context, path string, access host.Access) error {
	return t.runOperation(ctx, "MakeDirectory", path, func(d *drive) error {
		made, err := d.makeDirectory(path, access)
		if made {
			t.p.recordEntry(KindFile, "mkdir "+path, 0)
		}
		return err
	})
}

func (t tree) Symlink(ctx context.Context, target, link string) error {
	return t.runOperation(ctx, "Symlink", link, func(d *drive) error {
		err := d.createSymlink(target, link)
		if err == nil {
			t.p.recordEntry(KindFile, "link "+link+" to "+target, 0)
		}
		return err
	})
}

func (t tree) Rename(ctx context.Context, from, to string) error {
	return t.runOperation(ctx, "Rename", from, func(d *drive) error {
		err := d.renamePath(from, to)
		if err == nil {
			t.p.recordEntry(KindFile, "rename "+from+" to "+to, 0)
		}
		return err
	})
}
