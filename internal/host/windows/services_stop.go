//go:build windows

// ControlService stops a service, but fails while a dependent service runs. The dependents are read from the
// configurations of all services. EnumDependentServices also returns indirect dependents, but Stop must stop and
// await each service by the same steps.

package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Stop stops the dependents of a service and then the service, and waits until its process has ended.
func (services) Stop(ctx context.Context, name string) error {
	err := withManager(ctx, func(m manager) error { return m.stop(ctx, name, nil) })
	if err != nil {
		return fmt.Errorf("stop service %s: %w", name, err)
	}
	return nil
}

// stop stops the dependents of a service and then the service. The chain contains the services that wait for this
// service.
func (m manager) stop(ctx context.Context, name string, chain []string) error {
	if slices.Contains(chain, strings.ToLower(name)) {
		return errCircular
	}
	s, err := m.openService(name, windows.SERVICE_QUERY_STATUS)
	if err != nil {
		return err
	}
	defer s.close()
	status, err := s.awaitStableState(ctx)
	if err != nil || decodeState(status.CurrentState) == host.ServiceStopped {
		return err
	}
	dependents, err := m.activeDependents(ctx, name)
	if err != nil {
		return err
	}
	chain = append(chain[:len(chain):len(chain)], strings.ToLower(name))
	for _, dependent := range dependents {
		if err := m.stop(ctx, dependent, chain); err != nil && !errors.Is(err, host.ErrNotExist) {
			return fmt.Errorf("stop dependent service %s: %w", dependent, err)
		}
	}
	return s.stopAndWait(ctx, status)
}

// activeDependents returns the active services with a direct dependency on the named service.
func (m manager) activeDependents(ctx context.Context, name string) ([]string, error) {
	entries, err := m.list(windows.SERVICE_WIN32)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if decodeState(entry.status.CurrentState) == host.ServiceStopped {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		dependencies, err := serviceDependencies(entry.name)
		if errors.Is(err, host.ErrNotExist) || errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			continue // if a hidden service is a dependent, ControlService fails
		}
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(dependencies, func(dependency string) bool { return strings.EqualFold(dependency, name) }) {
			names = append(names, entry.name)
		}
	}
	return names, nil
}

// stopAndWait stops a service without active dependents and waits until its process has ended. The status may be
// outdated, because stopping the dependents may have taken minutes.
func (s service) stopAndWait(ctx context.Context, status windows.SERVICE_STATUS_PROCESS) error {
	handle, run, err := claimProcess(runOf(status), s.processCalls(ctx))
	if err != nil || run.state == stateStopped {
		return err
	}
	process := windows.Handle(handle)
	if process != 0 {
		defer func() { _ = windows.CloseHandle(process) }()
	}
	started, err := s.openRelatedProcesses(ctx, int(run.pid))
	if err != nil {
		return err
	}
	defer started.close()
	if err := s.requestUntilStopped(ctx, run.pid); err != nil {
		return err
	}
	until := time.Now().Add(exitGracePeriod)
	if process != 0 {
		if err := awaitExit(ctx, process, exitGracePeriod); err != nil {
			return fmt.Errorf("wait for process %d to end: %w", run.pid, err)
		}
	}
	return started.awaitExit(ctx, until)
}

// exitGracePeriod is the grace period of a process after its service has stopped. Some processes never end by
// themselves: the main functions of csi-proxy and hybrid-overlay-node do not receive the stop. The service control
// manager also ends such processes, after an undocumented time.
const exitGracePeriod = 30 * time.Second

var errStillRunning = errors.New("the process is still running")

// awaitExit waits for the end of the process of a stopped service, and ends the process after the grace period.
func awaitExit(ctx context.Context, process windows.Handle, grace time.Duration) error {
	limited, cancel := context.WithTimeoutCause(ctx, grace, errStillRunning)
	defer cancel()
	if err := waitForObject(limited, process); !errors.Is(err, errStillRunning) {
		return err
	}
	if err := windows.TerminateProcess(process, exitKilled); err != nil && !hasEnded(process) {
		return fmt.Errorf("end the process: %w", err)
	}
	return waitForObject(ctx, process)
}

func runOf(status windows.SERVICE_STATUS_PROCESS) serviceRun {
	return serviceRun{status.CurrentState, status.ProcessId, status.ServiceType&windows.SERVICE_WIN32_OWN_PROCESS != 0}
}

// processCalls returns the calls that open the process of the service with OpenProcess, for waiting and termination,
// and query the service with QueryServiceStatusEx.
func (s service) processCalls(ctx context.Context) processCalls {
	return processCalls{
		open: openToEnd,
		close: func(handle uintptr) {
			_ = windows.CloseHandle(windows.Handle(handle))
		},
		query: func() (serviceRun, error) {
			if ctx.Err() != nil {
				return serviceRun{}, context.Cause(ctx)
			}
			status, err := s.queryStatus()
			return runOf(status), err
		},
	}
}

// openToEnd opens a process for waiting and termination.
func openToEnd(pid uint32) (uintptr, error) {
	process, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_TERMINATE, false, pid)
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) || errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return 0, nil // the process has ended, or Windows protects it
	}
	if err != nil {
		return 0, fmt.Errorf("open process %d: %w", pid, err)
	}
	return uintptr(process), nil
}

// requestUntilStopped sends the stop control and waits until the service has stopped.
func (s service) requestUntilStopped(ctx context.Context, pid uint32) error {
	for {
		err := requestStop(ctx, s.Name)
		refused := errors.Is(err, windows.ERROR_SERVICE_CANNOT_ACCEPT_CTRL) // the service is starting or stopping
		if err != nil && !refused {
			return err
		}
		status, err := s.pollStatus(ctx, func(status windows.SERVICE_STATUS_PROCESS) bool {
			state := decodeState(status.CurrentState)
			// After accepting the control, a service may briefly report the running state.
			return state == host.ServiceStopped || state == host.ServiceRunning && (refused || status.ProcessId != pid)
		})
		switch {
		case errors.Is(err, host.ErrNotExist):
			return nil // it was marked for deletion
		case err != nil:
			return err
		case decodeState(status.CurrentState) == host.ServiceStopped:
			return nil
		case status.ProcessId != pid:
			return fmt.Errorf("another program started the service again as process %d", status.ProcessId)
		}
	}
}

// requestStop sends the stop control. ControlService waits up to 30 s for the response of the service.
func requestStop(ctx context.Context, name string) error {
	return runDetached(ctx, func() error {
		return withService(name, windows.SERVICE_STOP, func(s service) error {
			_, err := s.Control(svc.Stop)
			if isProcessEndedError(err) {
				return nil
			}
			return translateError(err)
		})
	})
}

// isProcessEndedError reports whether a stop control failed because the process of the service has ended, or ends
// before the response. The service control manager writes the control to a pipe and reads the response from the pipe.
// The write fails with ERROR_NO_DATA if the process has just ended. The read fails with ERROR_BROKEN_PIPE if the
// process ends in the meantime.
func isProcessEndedError(err error) bool {
	return errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) || errors.Is(err, windows.ERROR_BROKEN_PIPE) ||
		errors.Is(err, windows.ERROR_NO_DATA)
}
