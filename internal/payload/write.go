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

// Build contains the inputs of a payload.
type Build struct {
	Version string // of the operator
	// WindowBytes is Manifest.WindowBytes; zero means DefaultWindowBytes.
	WindowBytes int64
	Components  []Source
	// Absent is Manifest.Absent.
	Absent []Absent
	// Earlier are payloads that hosts may have. Write creates patches from earlier to changed files if the patch is
	// smaller than the compressed file.
	Earlier []*Payload
}

// Source is a component to write. Size and SHA256 of its Files are not set; Content has one entry per file.
type Source struct {
	Component
	// Content opens the content of each file.
	Content []func() (io.ReadCloser, error)
}

// Write writes a payload to a directory, which is created if needed: first the files, compressed as sent to hosts,
// then the packs, and finally the manifest. Complete files in the store are not written again. In an empty directory
// the output is deterministic; the store of another release may contain files that were compressed differently.
func Write(directory string, build Build) (*Payload, error) {
	p := &Payload{directory: directory, bySum: map[string]File{},
		manifest: Manifest{Schema: SchemaVersion, Version: build.Version, WindowBytes: build.WindowBytes, Absent: build.Absent}}
	if err := os.MkdirAll(filepath.Join(directory, storeName), 0o755); err != nil { //nolint:gosec // G301: part of an image, for whatever user its container has
		return nil, fmt.Errorf("write the payload: %w", err)
	}
	for _, source := range build.Components {
		component, err := p.writeComponent(source)
		if err != nil {
			return nil, fmt.Errorf("write the payload: component %s: %w", source.Name, err)
		}
		p.manifest.Components = append(p.manifest.Components, component)
	}
	if err := p.manifest.Validate(); err != nil {
		return nil, fmt.Errorf("write the payload: the manifest is not valid: %w", err)
	}
	for _, f := range p.manifest.distinctFiles() {
		p.bySum[f.SHA256] = f
	}
	var patchErr, packErr error
	p.manifest.Patches, patchErr = p.writePatches(build.Earlier)
	p.manifest.Packs, packErr = p.writePacks()
	data, err := json.MarshalIndent(p.manifest, "", "  ")
	if err := errors.Join(patchErr, packErr, err); err != nil {
		return nil, fmt.Errorf("write the payload: %w", err)
	}
	if err := p.removePacked(); err != nil {
		return nil, fmt.Errorf("write the payload: %w", err)
	}
	err = writeFile(filepath.Join(directory, ManifestName), func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(append(data, '\n')))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("write the payload: %w", err)
	}
	return Load(directory)
}

func (p *Payload) writeComponent(source Source) (Component, error) {
	component := source.Component
	if len(source.Content) != len(component.Files) {
		return Component{}, fmt.Errorf("%d files are listed with content for %d", len(component.Files), len(source.Content))
	}
	component.Files = nil
	for i, f := range source.Files {
		stored, err := p.storeFile(f.Path, source.Content[i], component.Name != ComponentAgent)
		if err != nil {
			return Component{}, fmt.Errorf("file %s: %w", f.Path, err)
		}
		component.Files = append(component.Files, stored)
	}
	return component, nil
}

// storeFile reads the content for its digest, and a second time to write the file if the store does not have it.
func (p *Payload) storeFile(path string, open func() (io.ReadCloser, error), compress bool) (File, error) {
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

	target, other := p.storePath(f.SHA256), p.storePath(f.SHA256)+zstdSuffix
	compress = compress && f.Size >= minCompressedBytes
	if compress {
		target, other = other, target
	}
	if _, err := os.Stat(target); err == nil && p.checkFile(f) == nil && p.verifyFile(f) == nil {
		return f, nil
	}
	content, err = open()
	if err != nil {
		return File{}, err
	}
	defer content.Close()
	verified := &contentReader{verifiedReader: newVerifiedReader(content, f.Size, f.SHA256)}
	write := func(w io.Writer) error { _, err := io.Copy(w, verified); return err }
	if compress {
		write = func(w io.Writer) error { return p.compressTo(w, verified, f.Size) }
	}
	if err := writeFile(target, write); err != nil {
		return File{}, err
	}
	// The other form is not sent to hosts.
	if err := os.Remove(other); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return File{}, err
	}
	return f, nil
}

func (p *Payload) compressTo(w io.Writer, content io.Reader, size int64) error {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(wireLevel), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(windowFor(size, p.manifest.WindowBytes)))
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

// writeFile writes a file atomically.
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
