package hostutil

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
)

// FindProcess returns the current process with the ID; there is false if none exists.
func FindProcess(ctx context.Context, processes host.Processes, pid int) (found host.Process, there bool, err error) {
	list, err := processes.List(ctx)
	if err != nil {
		return host.Process{}, false, fmt.Errorf("list processes: %w", err)
	}
	for _, process := range list {
		if process.PID == pid {
			return process, true, nil
		}
	}
	return host.Process{}, false, nil
}
