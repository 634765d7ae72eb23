package fake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// stopService stops a service after all dependents and waits until the process has ended.
func (m *Machine) stopService(ctx context.Context, name string) error {
	s, err := m.awaitStableService(ctx, name)
	if err != nil || s.state == host.ServiceStopped {
		return err
	}
	for _, dependent := range m.activeDependents(name) {
		if err := m.stopService(ctx, dependent); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("stop dependent service %s: %w", dependent, err)
		}
	}
	if err := m.requestStop(name, s.process); err != nil {
		return err
	}
	select {
	case <-s.process.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for process %d to end: %w", s.process.PID, context.Cause(ctx))
	}
}

// activeDependents returns the services that are not stopped and depend on the given service.
func (m *Machine) activeDependents(name string) []string {
	m.lock()
	defer m.unlock()
	var names []string
	for _, other := range m.serviceNames() {
		s := m.services[foldCase(other)]
		if s.state == host.ServiceStopped {
			continue
		}
		for _, dependency := range s.config.Dependencies {
			if strings.EqualFold(dependency, name) {
				names = append(names, other)
				break
			}
		}
	}
	return names
}

// requestStop sends the stop control to a service.
func (m *Machine) requestStop(name string, process *Process) error {
	m.lock()
	defer m.unlock()
	s := m.services[foldCase(name)]
	if s == nil || s.process != process {
		return nil // ended in the meantime
	}
	s.state = host.ServiceStopPending
	process.stopped = true
	process.cancel()
	m.changes.notifyWaiters()
	return nil
}
