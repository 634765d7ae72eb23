//go:build windows

// StartService starts a service. Dependencies are started before the service, one after the other, although the
// service control manager would also start them. This order lets the error name each dependency that does not start.

package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// errCircular means that services depend on each other.
var errCircular = errors.New("circular service dependency was specified")

// Start starts the dependencies of a service and then the service, and waits until the service runs.
func (services) Start(ctx context.Context, name string) error {
	err := withManager(ctx, func(m manager) error { return m.start(ctx, name, nil) })
	if err != nil {
		return fmt.Errorf("start service %s: %w", name, err)
	}
	return nil
}

// withManager runs an operation that waits for services. Each call in the operation must check ctx.
func withManager(ctx context.Context, operation func(manager) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m, err := connectManager(windows.SC_MANAGER_CONNECT | windows.SC_MANAGER_ENUMERATE_SERVICE)
	if err != nil {
		return err
	}
	defer m.close()
	return operation(m)
}

// start starts the dependencies of a service and then the service. The chain contains the services that wait for
// this service.
func (m manager) start(ctx context.Context, name string, chain []string) error {
	if slices.Contains(chain, strings.ToLower(name)) {
		return errCircular
	}
	s, err := m.openService(name, windows.SERVICE_QUERY_STATUS|windows.SERVICE_QUERY_CONFIG)
	if err != nil {
		return err
	}
	defer s.close()
	status, err := s.awaitStableState(ctx)
	if err != nil || decodeState(status.CurrentState) == host.ServiceRunning {
		return err
	}
	base, err := s.baseConfig()
	if err != nil {
		return err
	}
	if base.start == host.StartDisabled {
		return windows.ERROR_SERVICE_DISABLED
	}
	chain = append(chain[:len(chain):len(chain)], strings.ToLower(name))
	dependencies, err := serviceDependencies(name)
	if err != nil {
		return err
	}
	for _, dependency := range dependencies {
		if strings.HasPrefix(dependency, loadGroupPrefix) {
			continue // a group of drivers, which the service control manager checks
		}
		if err := m.start(ctx, dependency, chain); err != nil {
			return fmt.Errorf("%w: %s: %w", host.ErrDependency, dependency, err)
		}
	}
	return m.startAndWait(ctx, name)
}

// startAndWait starts a service with running dependencies and waits until the service runs.
func (m manager) startAndWait(ctx context.Context, name string) error {
	// StartService waits up to 30 s for the process of the service. The call has a separate connection because the
	// caller may return earlier.
	err := runDetached(ctx, func() error {
		return withService(name, windows.SERVICE_START, func(s service) error {
			err := s.startUnlocked(ctx)
			if errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
				return nil
			}
			return translateError(err)
		})
	})
	if err != nil {
		return err
	}
	s, err := m.openService(name, windows.SERVICE_QUERY_STATUS)
	if err != nil {
		return err
	}
	defer s.close()
	status, err := s.awaitStableState(ctx)
	if err != nil {
		return err
	}
	if decodeState(status.CurrentState) == host.ServiceStopped {
		return stoppedAtStart(status)
	}
	return nil
}

// databaseLockTimeout is the maximum time that the start of another service may lock the service database. StartService
// waits the same time for a process.
const databaseLockTimeout = 30 * time.Second

// startUnlocked retries StartService after ERROR_SERVICE_DATABASE_LOCKED.
func (s service) startUnlocked(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, databaseLockTimeout)
	defer cancel()
	for {
		err := s.Start()
		if !errors.Is(err, windows.ERROR_SERVICE_DATABASE_LOCKED) {
			return err
		}
		timer := time.NewTimer(maxPollInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// stoppedAtStart returns the error for a service that ended during its start. The exit code has a service-specific
// meaning, so the error contains a message but no host error.
func stoppedAtStart(status windows.SERVICE_STATUS_PROCESS) error {
	code := exitCode(status.Win32ExitCode, status.ServiceSpecificExitCode)
	words := ""
	if status.Win32ExitCode != 0 && status.Win32ExitCode != codeServiceSpecific {
		words = ": " + windows.Errno(status.Win32ExitCode).Error()
	}
	return fmt.Errorf("the service exited during its start with exit code %d%s; see the log of the service", code, words)
}

// Delays between two status queries of a service that starts or stops.
const (
	minPollInterval = 5 * time.Millisecond
	maxPollInterval = 200 * time.Millisecond
)

// awaitStableState waits until a service is neither starting nor stopping.
func (s service) awaitStableState(ctx context.Context) (windows.SERVICE_STATUS_PROCESS, error) {
	return s.pollStatus(ctx, func(status windows.SERVICE_STATUS_PROCESS) bool {
		state := decodeState(status.CurrentState)
		return state == host.ServiceRunning || state == host.ServiceStopped
	})
}

// pollStatus queries the status of a service until the status meets the condition. NotifyServiceStatusChange is
// unsuitable because it calls back only threads in an alertable wait, and no thread of a Go program waits alertably.
func (s service) pollStatus(ctx context.Context,
	wanted func(windows.SERVICE_STATUS_PROCESS) bool) (windows.SERVICE_STATUS_PROCESS, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := minPollInterval; ; pause = min(2*pause, maxPollInterval) {
		select {
		case <-ctx.Done():
			return windows.SERVICE_STATUS_PROCESS{}, fmt.Errorf("wait for service %s: %w", s.Name, context.Cause(ctx))
		case <-timer.C:
		}
		status, err := s.queryStatus()
		if err != nil || wanted(status) {
			return status, err
		}
		timer.Reset(pause)
	}
}
