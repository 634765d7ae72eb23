// Package sourcetree copies a part of a source tree from a checkout or an archive.
package sourcetree

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Copy copies the regular files below a subdirectory of a source tree to a new directory. The tree is a directory,
// or a tar file, optionally compressed with gzip. In an archive, the subdirectory may be below another one, as in
// archives from Git servers. Both sources give the same files. Links are excluded, as in Go modules.
func Copy(source, dir, to string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(to) // prevents writes outside of the directory
	if err != nil {
		return err
	}
	defer root.Close()
	w := writer{root: root}
	if info.IsDir() {
		err = w.copyDirectory(filepath.Join(source, filepath.FromSlash(dir)))
	} else {
		err = w.extractArchive(source, dir)
	}
	if err == nil && w.files == 0 {
		err = fmt.Errorf("it has no folder %s with files in it", dir)
	}
	return err
}

type writer struct {
	root  *os.Root
	files int
}

func (w *writer) copyDirectory(from string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := root.Open(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		defer file.Close()
		return w.write(name, file)
	})
}

func (w *writer) extractArchive(name, dir string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	stream, err := uncompressedReader(file)
	if err != nil {
		return fmt.Errorf("it is no archive: %w", err)
	}
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is no tar file that can be read to its end: %w", err)
		}
		below, is := pathBelow(header.Name, dir)
		if !is || header.Typeflag != tar.TypeReg {
			continue
		}
		if err := w.write(below, reader); err != nil {
			return err
		}
	}
}

// pathBelow returns the name of an archive entry relative to a directory at the top or one level below.
func pathBelow(name, folder string) (below string, is bool) {
	name = strings.TrimPrefix(name, "./")
	if below, is = strings.CutPrefix(name, folder+"/"); is {
		return below, true
	}
	_, rest, _ := strings.Cut(name, "/")
	return strings.CutPrefix(rest, folder+"/")
}

func uncompressedReader(file io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(file)
	if magic, err := buffered.Peek(2); err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, err
	}
	return gzip.NewReader(buffered)
}

func (w *writer) write(name string, content io.Reader) error {
	w.files++
	if err := w.root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o755); err != nil {
		return err
	}
	file, err := w.root.OpenFile(filepath.FromSlash(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
