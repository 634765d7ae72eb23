package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// blob is a written layer. It implements partial.CompressedLayer.
type blob struct {
	path           string
	digest, diffID v1.Hash
	size           int64
}

var _ interface {
	partial.CompressedLayer
	partial.WithDiffID
} = blob{}

// Digest implements partial.CompressedLayer.
func (b blob) Digest() (v1.Hash, error) { return b.digest, nil }

// DiffID returns the digest of the uncompressed layer. It implements partial.WithDiffID.
func (b blob) DiffID() (v1.Hash, error) { return b.diffID, nil }

// Size implements partial.CompressedLayer.
func (b blob) Size() (int64, error) { return b.size, nil }

// MediaType implements partial.CompressedLayer.
func (b blob) MediaType() (types.MediaType, error) { return types.OCILayer, nil }

// Compressed implements partial.CompressedLayer.
func (b blob) Compressed() (io.ReadCloser, error) { return os.Open(b.path) }

// writeBlob writes a layer into the directory of blobs, under its digest. The output is reproducible.
func writeBlob(dir string, l layer, modified time.Time, create func(string) (io.WriteCloser, error)) (blob, error) {
	temporary := filepath.Join(dir, "incomplete")
	target, err := create(temporary)
	if err != nil {
		return blob{}, err
	}
	compressed := &counter{to: target, hash: sha256.New()}
	diffID, err := writeCompressed(compressed, l, modified)
	if err := errors.Join(err, target.Close()); err != nil {
		return blob{}, fmt.Errorf("layer %s: %w", l, err)
	}
	b := blob{digest: sha256Hash(compressed.hash), diffID: diffID, size: compressed.size}
	b.path = filepath.Join(dir, b.digest.Hex)
	return b, os.Rename(temporary, b.path)
}

// writeCompressed writes a layer as a compressed archive, and returns the digest of the archive.
func writeCompressed(w io.Writer, l layer, modified time.Time) (v1.Hash, error) {
	level := gzip.DefaultCompression
	if l.compressed {
		level = gzip.NoCompression
	}
	zip, err := gzip.NewWriterLevel(w, level)
	if err != nil {
		return v1.Hash{}, err
	}
	sum := sha256.New()
	if err := writeArchive(io.MultiWriter(zip, sum), l.files, modified); err != nil {
		return v1.Hash{}, err
	}
	return sha256Hash(sum), zip.Close()
}

// writeArchive writes files with their directories.
func writeArchive(w io.Writer, files []file, modified time.Time) error {
	t := tar.NewWriter(w)
	for _, dir := range parentDirectories(files) {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: modified,
			Format: tar.FormatUSTAR}); err != nil {
			return err
		}
	}
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.path, b.path) }) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: f.size, ModTime: modified,
			Format: tar.FormatUSTAR}
		if f.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, f.link
		}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if f.link != "" {
			continue
		}
		content, err := f.content()
		if err != nil {
			return err
		}
		_, err = io.Copy(t, content)
		if err := errors.Join(err, content.Close()); err != nil {
			return fmt.Errorf("file %s: %w", f.path, err)
		}
	}
	return t.Close()
}

// parentDirectories returns the directories of the files, outer ones first.
func parentDirectories(files []file) []string {
	seen := map[string]bool{}
	for _, f := range files {
		for dir := path.Dir(f.path); dir != "."; dir = path.Dir(dir) {
			seen[dir] = true
		}
	}
	return slices.SortedFunc(func(yield func(string) bool) {
		for dir := range seen {
			if !yield(dir) {
				return
			}
		}
	}, strings.Compare)
}

// counter forwards bytes, and records their number and digest.
type counter struct {
	to   io.Writer
	hash hash.Hash
	size int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.hash.Write(b[:n])
	c.size += int64(n)
	return n, err
}

func sha256Hash(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}

func fileDigest(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
