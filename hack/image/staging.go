package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// staging is a directory next to the output that receives all files first: an incomplete image never exists under
// the name of the output.
type staging struct {
	directory, output string
}

// newStaging creates the directory. It refuses an existing output other than an OCI layout.
func newStaging(output string) (staging, error) {
	output = filepath.Clean(output)
	if entries, err := os.ReadDir(output); err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(output, "oci-layout")); err != nil {
			return staging{}, fmt.Errorf("%s exists and is not an OCI layout, so it is not overwritten: give another -output", output)
		}
	}
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return staging{}, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(output), "."+filepath.Base(output)+"-")
	if err != nil {
		return staging{}, err
	}
	return staging{directory: dir, output: output}, nil
}

func (s staging) layoutPath() string { return filepath.Join(s.directory, "new") }

// sbomPath returns the path of an image's SBOM.
func sbomPath(output string) string { return filepath.Clean(output) + ".spdx.json" }

// moveToOutput moves layout and SBOM to their final paths.
func (s staging) moveToOutput(sbom []byte) error {
	description := filepath.Join(s.directory, "sbom")
	if err := os.WriteFile(description, sbom, 0o644); err != nil {
		return err
	}
	err := os.Rename(s.output, filepath.Join(s.directory, "old"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(s.layoutPath(), s.output); err != nil {
		return err
	}
	return os.Rename(description, sbomPath(s.output))
}

// deleteFiles deletes the staging directory with the incomplete image or the replaced image.
func (s staging) deleteFiles() { _ = os.RemoveAll(s.directory) }
