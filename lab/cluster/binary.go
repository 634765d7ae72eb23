package cluster

import (
	"fmt"
	"os"

	"github.com/windows-machine-config/wmco/lab/process"
)

const (
	// binaryVariable overrides the path of the control plane's executable that `make` builds.
	binaryVariable = "WMCO_LAB_CONTROLPLANE"
	binaryPath     = "build/lab-controlplane"
)

// findBinary returns the path of the control plane's executable: from the environment, otherwise below the root
// of the repository that contains the working directory.
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
