//go:build windows

// The process table is read from a Toolhelp snapshot, which needs no rights and contains the parent and the name of
// each process. Paths come from QueryFullProcessImageName, which also finds a renamed executable. Start times come
// from GetProcessTimes.

package windows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// processes implements host.Processes.
type processes struct{}

// exitKilled is the exit code of a process ended by Kill. Task Manager uses the same code.
const exitKilled = 1

// List returns all processes, sorted by PID. Path and start time are empty for processes that this program cannot
// inspect.
func (processes) List(ctx context.Context) ([]host.Process, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, fmt.Errorf("list processes: create a snapshot: %w", err)
	}
	defer func() { _ = windows.CloseHandle(snapshot) }()
	var list []host.Process
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		path, started := imageOf(entry.ProcessID)
		list = append(list, host.Process{
			PID: int(entry.ProcessID), Parent: int(entry.ParentProcessID),
			Name: windows.UTF16ToString(entry.ExeFile[:]), Path: path, Started: started,
		})
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	slices.SortFunc(list, func(a, b host.Process) int { return cmp.Compare(a.PID, b.PID) })
	return list, nil
}

// Kill ends a process and waits for its end.
func (processes) Kill(ctx context.Context, pid int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	process, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.SYNCHRONIZE, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return nil // no such process
	}
	if err != nil {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	defer func() { _ = windows.CloseHandle(process) }()
	if err := windows.TerminateProcess(process, exitKilled); err != nil && !hasEnded(process) {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	if err := waitForObject(ctx, process); err != nil {
		return fmt.Errorf("wait for process %d to end: %w", pid, err)
	}
	return nil
}

// Self returns the PID of the caller's own process.
func (processes) Self() int { return os.Getpid() }

// hasEnded reports whether a process has already ended, because Windows refuses to end such a process.
func hasEnded(process windows.Handle) bool {
	event, err := windows.WaitForSingleObject(process, 0)
	return err == nil && event == windows.WAIT_OBJECT_0
}

// imageOf returns the executable and the start time of a process. Facts that Windows does not report are empty.
func imageOf(pid uint32) (path string, started time.Time) {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return "", time.Time{}
	}
	defer func() { _ = windows.CloseHandle(process) }()
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &created, &exited, &kernel, &user); err == nil {
		started = time.Unix(0, created.Nanoseconds())
	}
	buffer := make([]uint16, windows.MAX_LONG_PATH)
	size := uint32(len(buffer))
	if err := windows.QueryFullProcessImageName(process, 0, &buffer[0], &size); err != nil {
		return "", started
	}
	return windows.UTF16ToString(buffer[:size]), started
}
