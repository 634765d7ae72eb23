package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

const (
	sumsFile       = "SHA256SUMS"
	provenanceFile = "provenance.intoto.json"
)

// packDirectory writes a directory as a reproducible archive: files are ordered by name, without times and owners.
func packDirectory(dir, archive string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("pack %s: %w: `make release` builds it", dir, err)
	}
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	w := tar.NewWriter(file)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return addFile(w, path, filepath.ToSlash(name))
	})
	if err := errors.Join(err, w.Close(), file.Close()); err != nil {
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	return nil
}

func addFile(w *tar.Writer, path, name string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: fileMode(info), Size: info.Size(),
		ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}); err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return err
}

// fileMode reduces a file's mode to whether it is executable, because the other bits depend on the machine.
func fileMode(info fs.FileInfo) int64 {
	if info.Mode()&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// sum is a line of SHA256SUMS.
type sum struct{ name, sha256 string }

// writeSums writes the checksums of all files in a directory, in the format of `sha256sum --check`.
func writeSums(dir string) ([]sum, error) {
	entries, err := os.ReadDir(dir) // by name
	if err != nil {
		return nil, err
	}
	var sums []sum
	var text strings.Builder
	for _, entry := range entries {
		digest, err := digestOf(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum{entry.Name(), digest})
		fmt.Fprintf(&text, "%s  %s\n", digest, entry.Name())
	}
	return sums, os.WriteFile(filepath.Join(dir, sumsFile), []byte(text.String()), 0o644)
}

func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// imageDigest returns the digest of the image for all platforms, which is the first in the layout of `make image`.
func imageDigest(dir string) (string, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return "", fmt.Errorf("%s is no image: %w: `make release` builds it", dir, err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		return "", err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return "", err
	}
	if len(manifest.Manifests) == 0 || !manifest.Manifests[0].MediaType.IsIndex() {
		return "", fmt.Errorf("%s has no image for several platforms: `make release` builds it", dir)
	}
	return manifest.Manifests[0].Digest.Hex, nil
}

// imageReference returns the name of a pushed image, with its digest.
func imageReference(dir, pushed string) (string, error) {
	tag, err := name.NewTag(pushed)
	if err != nil {
		return "", fmt.Errorf("IMAGE=%s is no name with a tag that the release's image is pushed to: %w", pushed, err)
	}
	digest, err := imageDigest(dir)
	if err != nil {
		return "", err
	}
	return tag.Context().Digest("sha256:" + digest).String(), nil
}
