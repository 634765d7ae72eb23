package fake

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/windows-machine-config/wmco/internal/host"
)

// logs implements host.Logs for one process.
type logs struct{ p *Process }

func (l logs) Rotate(ctx context.Context, path, to string) error {
	return l.p.runOperation(ctx, "Logs", "Rotate", path, func(m *Machine) error {
		size, err := m.drive.rotateFile(path, to)
		if err != nil {
			return fmt.Errorf("rotate %s to %s: %w", path, to, err)
		}
		l.p.recordEntry(KindLog, "rotate "+path+" to "+to, size)
		return nil
	})
}

// rotateFile copies a file to a new file and empties the original. A handle that shares the file, such as that of a log
// writer, does not prevent the rotation.
func (d *drive) rotateFile(path, to string) (size int64, err error) {
	at, err := d.resolveExisting(path, true)
	if err != nil {
		return 0, err
	}
	target, err := d.resolvePath(to, false)
	switch {
	case err != nil:
		return 0, err
	case at.isDirectory():
		return 0, errDenied
	case target.hasEntry():
		return 0, errExists
	case (at.mount == nil) != (target.mount == nil):
		return 0, errParameter // the log and its copy must be on the same side of a mount
	case at.mount != nil:
		return rotateReal(at.real, target.real)
	}
	if err := at.node.checkTruncatable(); err != nil {
		return 0, err
	}
	if size = at.node.contentSize(); size > d.freeBytes() {
		return 0, errDiskFull
	}
	rotated := d.addNode(target.parent, target.lastName(), at.node.access)
	if at.node.content != nil {
		d.setContent(rotated, d.contents.internContent(at.node.content.data))
	}
	d.setContent(at.node, d.contents.internContent(nil))
	return size, nil
}

func rotateReal(path, to string) (size int64, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return 0, err
	}
	_, err = file.Write(data)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Truncate(path, 0)
	}
	if err != nil {
		_ = os.Remove(to) // the first error is reported
		return 0, err
	}
	return int64(len(data)), nil
}

// AppendLog appends to a file, which is created if missing, and keeps the file open until the process ends, as for a
// log. Meanwhile the file can be read and emptied, but not replaced, removed or renamed.
func (p *Process) AppendLog(path, text string) error {
	return p.runLocked(func(m *Machine) error { return pathError("append", path, m.drive.appendLog(p, path, text)) })
}

func (d *drive) appendLog(p *Process, path, text string) error {
	at, err := d.resolvePath(path, true)
	switch {
	case err != nil:
		return err
	case at.isDirectory():
		return errDenied
	case at.mount != nil:
		return appendReal(at.real, text)
	case int64(len(text)) > d.freeBytes():
		return errDiskFull
	case at.node == nil:
		at.node = d.addNode(at.parent, at.lastName(), host.AccessInherited)
	}
	if err := at.node.checkWritable(); err != nil {
		return err
	}
	p.shareFile(at.node)
	var present []byte
	if at.node.content != nil {
		present = at.node.content.data
	}
	d.setContent(at.node, d.contents.internContent(append(present[:len(present):len(present)], text...)))
	return nil
}

// shareFile holds a file, once, like a log writer.
func (p *Process) shareFile(n *node) {
	for _, h := range p.holds {
		if h.node == n && h.shared {
			return
		}
	}
	h := n.addHold(fmt.Sprintf("%s (process %d)", p.Path, p.PID), false)
	h.shared = true
	p.holds = append(p.holds, h)
}

func appendReal(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}
