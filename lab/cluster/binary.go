package cluster

import (
	"fmt"
	"os"

	"github.com/windows-machine-config/wmco/lab/process"
)

const (
	// binaryVariable names the control plane's executable, where it is not the one that make builds.
	binaryVariable = "WMCO_LAB_CONTROLPLANE"
	binaryPath     = "build/lab-controlplane"
)

// findBinary looks for the control plane's executable in the environment, else below the root of
// the repository that the working directory is in.
func findBinary() (string, error) {
	if path := os.Getenv(binaryVariable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", binaryVariable, err)
		}
		return path, nil
	}
	path, err := process.Built(binaryPath)
	if err != nil {
		return "", fmt.Errorf("find the lab's control plane: %w: run `make %s`, or set %s to the executable", err, binaryPath, binaryVariable)
	}
	return path, nil
}
