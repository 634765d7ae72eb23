//go:build windows

// ControlService stops a service; it refuses while one runs that depends on it. Which those are is read from the
// configurations of all services: EnumDependentServices would mix in those that depend on these, and each is to be
// stopped, and waited for, by the same steps.

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

// Stop stops a service and before it what depends on it, and waits until its process is gone.
func (services) Stop(ctx context.Context, name string) error {
	err := withManager(ctx, func(m manager) error { return m.stop(ctx, name, nil) })
	if err != nil {
		return fmt.Errorf("stop service %s: %w", name, err)
	}
	return nil
}

// stop stops a service and before it what depends on it. The chain are the services that wait for this one.
func (m manager) stop(ctx context.Context, name string, chain []string) error {
	if slices.Contains(chain, strings.ToLower(name)) {
		return errCircular
	}
	s, err := m.open(name, windows.SERVICE_QUERY_STATUS)
	if err != nil {
		return err
	}
	defer s.close()
	status, err := s.settle(ctx)
	if err != nil || decodeState(status.CurrentState) == host.ServiceStopped {
		return err
	}
	dependents, err := m.dependents(ctx, name)
	if err != nil {
		return err
	}
	chain = append(chain[:len(chain):len(chain)], strings.ToLower(name))
	for _, dependent := range dependents {
		if err := m.stop(ctx, dependent, chain); err != nil && !errors.Is(err, host.ErrNotExist) {
			return fmt.Errorf("stop %s, which depends on it: %w", dependent, err)
		}
	}
	return s.end(ctx, status)
}

// dependents returns the services that do not stand still and name this one among their dependencies.
func (m manager) dependents(ctx context.Context, name string) ([]string, error) {
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
			continue // if a hidden one does depend on it, ControlService refuses
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

// end stops a service on which nothing depends any more, and waits until its process is gone. The status may be old: to
// stop what depended on it may have taken minutes.
func (s service) end(ctx context.Context, status windows.SERVICE_STATUS_PROCESS) error {
	handle, run, err := claimProcess(runOf(status), s.processCalls(ctx))
	if err != nil || run.state == stateStopped {
		return err
	}
	process := windows.Handle(handle)
	if process != 0 {
		defer func() { _ = windows.CloseHandle(process) }()
	}
	started, err := s.started(ctx, int(run.pid))
	if err != nil {
		return err
	}
	defer started.close()
	if err := s.requestUntilStopped(ctx, run.pid); err != nil {
		return err
	}
	until := time.Now().Add(exitGrace)
	if process != 0 {
		if err := awaitExit(ctx, process, exitGrace); err != nil {
			return fmt.Errorf("wait for its process %d to end: %w", run.pid, err)
		}
	}
	return started.awaitExit(ctx, until)
}

// exitGrace is how long a process may go on after its service has stopped. Some never end by themselves (csi-proxy and
// hybrid-overlay-node: their main functions do not hear of the stop). The service control manager ends such processes
// too, after a time that is not documented.
const exitGrace = 30 * time.Second

var errStays = errors.New("the process is still running")

// awaitExit waits for the end of the process of a stopped service, and ends it after the grace.
func awaitExit(ctx context.Context, process windows.Handle, grace time.Duration) error {
	limited, cancel := context.WithTimeoutCause(ctx, grace, errStays)
	defer cancel()
	if err := waitForObject(limited, process); !errors.Is(err, errStays) {
		return err
	}
	if err := windows.TerminateProcess(process, exitKilled); err != nil && !ended(process) {
		return fmt.Errorf("end it: %w", err)
	}
	return waitForObject(ctx, process)
}

func runOf(status windows.SERVICE_STATUS_PROCESS) serviceRun {
	return serviceRun{status.CurrentState, status.ProcessId, status.ServiceType&windows.SERVICE_WIN32_OWN_PROCESS != 0}
}

// processCalls open the service's process to wait for, and to end, with OpenProcess, and ask after it with
// QueryServiceStatusEx.
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
			status, err := s.status()
			return runOf(status), err
		},
	}
}

// openToEnd opens a process to wait for its end, and to end it.
func openToEnd(pid uint32) (uintptr, error) {
	process, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_TERMINATE, false, pid)
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) || errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return 0, nil // it has ended, or Windows protects it
	}
	if err != nil {
		return 0, fmt.Errorf("open its process %d: %w", pid, err)
	}
	return uintptr(process), nil
}

// requestUntilStopped sends the stop control and waits until the service has stopped.
func (s service) requestUntilStopped(ctx context.Context, pid uint32) error {
	for {
		err := requestStop(ctx, s.Name)
		refused := errors.Is(err, windows.ERROR_SERVICE_CANNOT_ACCEPT_CTRL) // for now: it is starting or stopping
		if err != nil && !refused {
			return err
		}
		status, err := s.poll(ctx, func(status windows.SERVICE_STATUS_PROCESS) bool {
			state := decodeState(status.CurrentState)
			// A service that accepted may say that it runs for a moment longer.
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
			return fmt.Errorf("it runs again, as process %d: something else started it", status.ProcessId)
		}
	}
}

// requestStop sends the stop control. ControlService waits for the service's answer, up to 30 s.
func requestStop(ctx context.Context, name string) error {
	return await(ctx, func() error {
		return withService(name, windows.SERVICE_STOP, func(s service) error {
			_, err := s.Control(svc.Stop)
			if endsAnyway(err) {
				return nil
			}
			return translate(err)
		})
	})
}

// endsAnyway reports whether a stop control failed because the process of the service has ended, or ends before it has
// answered. The service control manager writes the control into a pipe and reads the answer from it: the write fails
// with ERROR_NO_DATA when the process has just ended, the read with ERROR_BROKEN_PIPE when it ends now.
func endsAnyway(err error) bool {
	return errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) || errors.Is(err, windows.ERROR_BROKEN_PIPE) ||
		errors.Is(err, windows.ERROR_NO_DATA)
}
