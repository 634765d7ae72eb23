package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// binaryVariable names the control plane's executable, where it is not the one that make builds.
	binaryVariable = "WMCO_LAB_CONTROLPLANE"
	binaryPath     = "build/lab-controlplane"
	rootModule     = "module github.com/windows-machine-config/wmco\n"
)

var errNotBuilt = errors.New("run `make " + binaryPath + "`, or set " + binaryVariable + " to the executable")

// findBinary looks for the control plane's executable in the environment, else below the root of
// the repository that the working directory is in.
func findBinary() (string, error) {
	if path := os.Getenv(binaryVariable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", binaryVariable, err)
		}
		return path, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root, err := findRoot(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, binaryPath)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the lab's control plane is not built: %w: %w", err, errNotBuilt)
	}
	return path, nil
}

// findRoot returns the directory of the root module that dir is in. Other modules may lie between.
func findRoot(dir string) (string, error) {
	for current := dir; ; current = filepath.Dir(current) {
		data, err := os.ReadFile(filepath.Join(current, "go.mod"))
		if err == nil && bytes.Contains(data, []byte(rootModule)) {
			return current, nil
		}
		if current == filepath.Dir(current) {
			return "", fmt.Errorf("the lab's control plane is not found: %s is not in the repository: %w", dir, errNotBuilt)
		}
	}
}
