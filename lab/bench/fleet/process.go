package fleet

import (
	"fmt"
	"os"
	"strconv"

	"github.com/prometheus/procfs"
)

// checkProc verifies that /proc shows the children of this process. In a container that forbids mounting /proc,
// it shows other processes.
func checkProc() error {
	self, err := os.Readlink("/proc/self")
	if err == nil && self != strconv.Itoa(os.Getpid()) {
		err = fmt.Errorf("process %d is %s there", os.Getpid(), self)
	}
	if err != nil {
		return fmt.Errorf("read the processor time of processes in /proc: %w: it shows other processes, because this container does not allow to mount it: "+
			"run this outside of a container, or in one with the capability SYS_ADMIN", err)
	}
	return nil
}

// processorTime returns the processor time of a process, in seconds.
func processorTime(pid int) (float64, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return stat.CPUTime(), nil
}

// residentMemory returns the memory of a process.
func residentMemory(pid int) (*Memory, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return nil, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return nil, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return &Memory{Peak: int64(status.VmHWM), Resident: int64(status.VmRSS)}, nil
}
