package gather

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"
)

// sink writes files, and is safe for concurrent use.
type sink interface {
	// addFile writes a file; its name contains slashes.
	addFile(name string, content []byte) error
	// finishOutput completes the output.
	finishOutput() error
	// discardOutput deletes incomplete output. After finishOutput, the method does nothing.
	discardOutput()
}

// directorySink writes files below an existing directory.
type directorySink struct{ directory string }

func (f directorySink) addFile(name string, content []byte) error {
	target := filepath.Join(f.directory, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	return os.WriteFile(target, content, 0o600)
}

func (f directorySink) finishOutput() error { return nil }

func (f directorySink) discardOutput() {}

// archive is a compressed tar file. The file has a temporary name until it is complete.
type archive struct {
	mu         sync.Mutex
	name       string
	file       *os.File
	compressed *gzip.Writer
	tar        *tar.Writer
	now        time.Time
	finished   bool
}

func newArchive(name string, now time.Time) (*archive, error) {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return nil, fmt.Errorf("create the archive: %w", err)
	}
	compressed := gzip.NewWriter(file)
	return &archive{name: name, file: file, compressed: compressed, tar: tar.NewWriter(compressed), now: now}, nil
}

// top is the top directory in the archive.
const top = "windows-gather"

func (a *archive) addFile(name string, content []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	header := &tar.Header{Name: path.Join(top, name), Mode: 0o644, Size: int64(len(content)), ModTime: a.now,
		Typeflag: tar.TypeReg}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("write %s into the archive: %w", name, err)
	}
	if _, err := a.tar.Write(content); err != nil {
		return fmt.Errorf("write %s into the archive: %w", name, err)
	}
	return nil
}

func (a *archive) finishOutput() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, closer := range []io.Closer{a.tar, a.compressed, a.file} {
		if err := closer.Close(); err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
	}
	if err := os.Rename(a.file.Name(), a.name); err != nil {
		return fmt.Errorf("rename the archive: %w", err)
	}
	a.finished = true
	return nil
}

func (a *archive) discardOutput() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.finished {
		return
	}
	_ = a.file.Close()              // the file is deleted
	err := os.Remove(a.file.Name()) // best effort
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "Warning:", err)
	}
}
