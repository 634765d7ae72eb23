package fake

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/windows-machine-config/wmco/internal/host"
)

// FileReader reads the content of a file at the time of opening.
type FileReader struct{ reader *bytes.Reader }

func newFileReader(data []byte) *FileReader { return &FileReader{bytes.NewReader(data)} }

// Read implements io.Reader.
func (r *FileReader) Read(b []byte) (int, error) { return r.reader.Read(b) }

// ReadAt implements io.ReaderAt; it may be called concurrently.
func (r *FileReader) ReadAt(b []byte, offset int64) (int, error) { return r.reader.ReadAt(b, offset) }

// Seek implements io.Seeker.
func (r *FileReader) Seek(offset int64, whence int) (int64, error) {
	return r.reader.Seek(offset, whence)
}

// Size returns the size of the content in bytes.
func (r *FileReader) Size() int64 { return r.reader.Size() }

// Close implements io.Closer.
func (r *FileReader) Close() error { return nil }

func (r *FileReader) readRest() []byte {
	data, _ := io.ReadAll(r.reader) // memory cannot fail
	return data
}

// OpenWriterOptions are the options for opening a file for writing.
type OpenWriterOptions struct {
	Exclusive bool // fails with ErrExist if the file exists
	MustExist bool // fails with ErrNotExist if the file does not exist
	Keep      bool // keeps the current content instead of truncating the file
}

// FileWriter writes one file at any offset, concurrently and in any order. While the FileWriter is open, the file is
// in use. Data written before a power off or before a connection loss is kept; gaps are filled with zeros.
type FileWriter struct {
	machine *Machine
	path    string
	hold    *hold
	real    *os.File // in a mounted directory, instead of hold and data

	mu     sync.Mutex // acquired before the machine's lock
	data   []byte
	closed error // error of further writes; nil while open
}

func (d *drive) openWriter(m *Machine, path string, options OpenWriterOptions) (*FileWriter, error) {
	at, err := d.resolvePath(path, true)
	switch {
	case err != nil:
		return nil, err
	case at.isDirectory():
		return nil, errDenied
	case options.Exclusive && at.hasEntry():
		return nil, errExists
	case options.MustExist && !at.hasEntry():
		return nil, errNotFound
	case at.mount != nil:
		return openRealWriter(m, at, options)
	case at.node == nil:
		at.node = d.addNode(at.parent, at.lastName(), host.AccessInherited)
	default:
		if err := at.node.checkUnused(); err != nil {
			return nil, err
		}
	}
	w := &FileWriter{machine: m, path: at.fullPath(), hold: at.node.addHold("an open SFTP handle", false)}
	if options.Keep && at.node.content != nil {
		w.data = bytes.Clone(at.node.content.data)
	} else {
		d.setContent(at.node, d.contents.internContent(nil))
	}
	d.pendingBytes += int64(len(w.data)) - at.node.contentSize()
	d.writers[w] = struct{}{}
	return w, nil
}

func openRealWriter(m *Machine, at resolvedPath, options OpenWriterOptions) (*FileWriter, error) {
	flags := os.O_RDWR | os.O_CREATE
	if !options.Keep {
		flags |= os.O_TRUNC
	}
	file, err := os.OpenFile(at.real, flags, 0o644)
	return &FileWriter{machine: m, path: at.fullPath(), real: file}, err
}

// WriteAt implements io.WriterAt. Errors: ErrDiskFull, ErrPoweredOff, fs.ErrClosed.
func (w *FileWriter) WriteAt(b []byte, offset int64) (int, error) {
	if w.real != nil {
		return w.real.WriteAt(b, offset)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.growTo(offset + int64(len(b))); err != nil {
		return 0, &fs.PathError{Op: "write", Path: w.path, Err: err}
	}
	return copy(w.data[offset:], b), nil
}

// growTo extends the data to at least the given size.
func (w *FileWriter) growTo(size int64) error {
	if w.closed != nil {
		return w.closed
	}
	more := size - int64(len(w.data))
	if more <= 0 {
		return nil
	}
	w.machine.lock()
	defer w.machine.unlock()
	if more > w.machine.drive.freeBytes() {
		return errDiskFull
	}
	w.machine.drive.pendingBytes += more
	w.data = append(withCapacity(w.data, int(more)), make([]byte, more)...)
	return nil
}

// Truncate sets the size of the file.
func (w *FileWriter) Truncate(size int64) error {
	if w.real != nil {
		return w.real.Truncate(size)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.growTo(size); err != nil {
		return &fs.PathError{Op: "truncate", Path: w.path, Err: err}
	}
	w.machine.lock()
	defer w.machine.unlock()
	w.machine.drive.pendingBytes -= int64(len(w.data)) - size
	w.data = w.data[:size]
	return nil
}

// Size returns the size of the written data in bytes.
func (w *FileWriter) Size() int64 {
	if w.real != nil {
		info, err := w.real.Stat()
		if err != nil {
			return 0
		}
		return info.Size()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(len(w.data))
}

// Close makes the written data visible. It returns ErrPoweredOff if the machine was powered off since the file was
// opened.
func (w *FileWriter) Close() error {
	if w.real != nil {
		return w.real.Close()
	}
	return w.close(fs.ErrClosed)
}

func (w *FileWriter) close(reason error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return w.closed
	}
	w.closed = reason
	w.machine.lock()
	defer w.machine.unlock()
	d := w.machine.drive
	d.pendingBytes -= int64(len(w.data)) - w.hold.node.contentSize()
	w.hold.releaseNode()
	d.setContent(w.hold.node, d.contents.internContent(w.data))
	delete(d.writers, w)
	w.machine.journal.Append(KindWrite, fmt.Sprintf("SFTP %s", w.path), int64(len(w.data)))
	w.data = nil
	return nil
}
