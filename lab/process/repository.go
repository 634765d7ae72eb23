package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

const rootModule = "module github.com/windows-machine-config/wmco\n"

// Repository returns the root of the repository that contains the working directory. Other modules may be in
// between.
func Repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for current := dir; ; current = filepath.Dir(current) {
		data, err := os.ReadFile(filepath.Join(current, "go.mod"))
		if err == nil && bytes.Contains(data, []byte(rootModule)) {
			return current, nil
		}
		if current == filepath.Dir(current) {
			return "", fmt.Errorf("%s is not in the repository, whose programs are needed: run it there", dir)
		}
	}
}

// Built returns the path of a program that `make` builds, for a path in the repository.
func Built(program string) (string, error) {
	root, err := Repository()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, program)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("it is not built: %w", err)
	}
	return path, nil
}
