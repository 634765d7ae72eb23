package windows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// relatedProcesses are the open processes of a service, without the service's own process.
type relatedProcesses []relatedProcess

type relatedProcess struct {
	host.Process
	handle windows.Handle
}

// openRelatedProcesses opens the other processes of a service while the service runs, because afterwards their
// relation to the service is unknown.
func (s service) openRelatedProcesses(ctx context.Context, pid int) (relatedProcesses, error) {
	line, err := s.configuredLine(ctx)
	if err != nil {
		return nil, err
	}
	list, err := processes{}.List(ctx)
	if err != nil {
		return nil, err
	}
	var open relatedProcesses
	for _, process := range findRelatedProcesses(pid, line, list) {
		handle, err := openToEnd(uint32(process.PID))
		if err != nil {
			open.close()
			return nil, err
		}
		if handle != 0 {
			open = append(open, relatedProcess{process, windows.Handle(handle)})
		}
	}
	return open, nil
}

// configuredLine returns the command line of the service, or "" if Windows hides it.
func (s service) configuredLine(ctx context.Context) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	var base baseConfig
	err := withService(s.Name, windows.SERVICE_QUERY_CONFIG, func(open service) (err error) {
		base, err = open.baseConfig()
		return err
	})
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, host.ErrNotExist) {
		return "", nil
	}
	return base.commandLine, err
}

func (p relatedProcesses) close() {
	for _, each := range p {
		_ = windows.CloseHandle(each.handle)
	}
}

// awaitExit waits for the end of each process and ends the remaining processes at the given time.
func (p relatedProcesses) awaitExit(ctx context.Context, until time.Time) error {
	for _, each := range p {
		if err := awaitExit(ctx, each.handle, max(0, time.Until(until))); err != nil {
			return fmt.Errorf("wait for process %d (%s) of the service to end: %w", each.PID, each.Name, err)
		}
	}
	return nil
}
