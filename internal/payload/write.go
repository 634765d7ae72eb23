package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Build holds the inputs of a payload.
type Build struct {
	Version string // of the operator
	// WindowBytes is Manifest.WindowBytes; zero takes DefaultWindowBytes.
	WindowBytes int64
	// Compress stores the files compressed, which keeps an image small and costs a little when they are read.
	Compress   bool
	Components []Source
	// Absent is Manifest.Absent.
	Absent []Absent
	// Earlier are payloads that hosts may have. Patches are made from their files to the changed ones of this, where that
	// is smaller than the compressed file.
	Earlier []*Payload
}

// Source is a component to be written. Size and SHA256 of its Files are not set; Content has one entry for each of
// them.
type Source struct {
	Component
	// Content opens the content of each file.
	Content []func() (io.ReadCloser, error)
}

// Write writes a payload into a folder, which it makes if need be: first the files, at last the manifest. Files that
// are in the store already are not written again. Equal input gives equal bytes.
func Write(directory string, build Build) (*Payload, error) {
	manifest := Manifest{Schema: SchemaVersion, Version: build.Version, WindowBytes: build.WindowBytes,
		Absent: build.Absent}
	store := filepath.Join(directory, storeName)
	if err := os.MkdirAll(store, 0o755); err != nil { //nolint:gosec // G301: part of an image, for whatever user its container has
		return nil, fmt.Errorf("write the payload: %w", err)
	}
	for _, source := range build.Components {
		component, err := writeComponent(store, source, build.Compress)
		if err != nil {
			return nil, fmt.Errorf("write the payload: component %s: %w", source.Name, err)
		}
		manifest.Components = append(manifest.Components, component)
	}
	if err := manifest.Validate(); err != nil {
		return nil, fmt.Errorf("write the payload: its manifest would not be valid: %w", err)
	}
	var err error
	if manifest.Patches, err = writePatches(directory, manifest, build.Earlier); err != nil {
		return nil, fmt.Errorf("write the payload: %w", err)
	}
	data, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the payload: %w", err)
	}
	err = writeFile(filepath.Join(directory, manifestName), func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(append(data, '\n')))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("write the payload: %w", err)
	}
	return Load(directory)
}

func writeComponent(store string, source Source, compress bool) (Component, error) {
	component := source.Component
	if len(source.Content) != len(component.Files) {
		return Component{}, fmt.Errorf("it has %d files and content for %d", len(component.Files), len(source.Content))
	}
	component.Files = nil
	for i, f := range source.Files {
		stored, err := storeFile(store, f.Path, source.Content[i], compress)
		if err != nil {
			return Component{}, fmt.Errorf("file %s: %w", f.Path, err)
		}
		component.Files = append(component.Files, stored)
	}
	return component, nil
}

// storeFile reads the content twice: for its digest, and, when the store does not have it yet, to write it.
func storeFile(store, path string, open func() (io.ReadCloser, error), compress bool) (File, error) {
	f := File{Path: path}
	content, err := open()
	if err != nil {
		return File{}, err
	}
	hash := sha256.New()
	f.Size, err = io.Copy(hash, content)
	if err = errors.Join(err, content.Close()); err != nil {
		return File{}, err
	}
	f.SHA256 = hex.EncodeToString(hash.Sum(nil))

	p := Payload{directory: filepath.Dir(store)}
	if p.checkFile(f) == nil {
		return f, nil
	}
	content, err = open()
	if err != nil {
		return File{}, err
	}
	defer content.Close()
	verified := &contentReader{verifiedReader: newVerifiedReader(content, f.Size, f.SHA256)}
	target, other := p.storePath(f.SHA256), p.storePath(f.SHA256)+zstdSuffix
	write := func(w io.Writer) error { _, err := io.Copy(w, verified); return err }
	if compress && f.Size > 0 { // An empty zstd file does not say that it is empty.
		target, other = other, target
		write = func(w io.Writer) error { return compressTo(w, verified, f.Size, zstd.SpeedDefault) }
	}
	if err := writeFile(target, write); err != nil {
		return File{}, err
	}
	// The other form would be a damaged one: a good one was taken above.
	if err := os.Remove(other); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return File{}, err
	}
	return f, nil
}

func compressTo(w io.Writer, content io.Reader, size int64, level zstd.EncoderLevel) error {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	encoder.ResetContentSize(w, size)
	if _, err := io.Copy(encoder, content); err != nil {
		encoder.Close()
		return err
	}
	return encoder.Close()
}

// writeFile puts a file in place whole or not at all.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".partial-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	err = write(file)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
