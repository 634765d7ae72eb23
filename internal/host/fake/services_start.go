package fake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
)

// failedStart reports a service process that ended during its start.
type failedStart struct {
	name     string
	exitCode int
}

func (e failedStart) Error() string {
	return fmt.Sprintf("service %s exited during its start with exit code %d", e.name, e.exitCode)
}

func (s serviceManager) Start(ctx context.Context, name string) error {
	return s.runBlocking(ctx, "Start", name, func(ctx context.Context, m *Machine) error {
		return m.startService(ctx, name, nil)
	})
}

func (s serviceManager) Stop(ctx context.Context, name string) error {
	return s.runBlocking(ctx, "Stop", name, func(ctx context.Context, m *Machine) error { return m.stopService(ctx, name) })
}

// runBlocking runs an operation that waits for services, without the machine's lock, until the requesting process ends.
func (s serviceManager) runBlocking(ctx context.Context, method, name string,
	action func(context.Context, *Machine) error) error {
	err := s.p.runOperation(ctx, "Services", method, name, func(*Machine) error {
		s.p.recordEntry(KindService, method+" "+name, 0)
		return nil
	})
	if err != nil {
		return err
	}
	ctx, cancel := s.p.processContext(ctx)
	defer cancel()
	if err := action(ctx, s.p.Machine); err != nil {
		return fmt.Errorf("%s service %s: %w", method, name, err)
	}
	return s.p.runLocked(func(*Machine) error { return nil }) // the process may have stopped its own service
}

// startService starts a service after its dependencies. chain are the services that wait for this service.
func (m *Machine) startService(ctx context.Context, name string, chain []string) error {
	if slices.Contains(chain, foldCase(name)) {
		return errCircular
	}
	for {
		s, err := m.awaitStableService(ctx, name)
		switch {
		case err != nil:
			return err
		case s.state == host.ServiceRunning:
			return nil
		case s.deleted:
			return errMarkedDeleted
		case s.config.StartType == host.StartDisabled:
			return errDisabled
		}
		for _, dependency := range s.config.Dependencies {
			if err := m.startService(ctx, dependency, append(chain[:len(chain):len(chain)], foldCase(name))); err != nil {
				return fmt.Errorf("%w: %s: %w", host.ErrDependency, dependency, err)
			}
		}
		if err := m.launchService(name); !errors.Is(err, errRaced) {
			return err
		}
	}
}

// awaitStableService waits until a service neither starts nor stops, and returns a copy of the service.
func (m *Machine) awaitStableService(ctx context.Context, name string) (settled service, err error) {
	waitErr := m.waitUntil(ctx, nil, func() bool {
		m.lock()
		defer m.unlock()
		s := m.services[foldCase(name)]
		switch {
		case m.power < powerBooting:
			err = ErrPoweredOff
		case s == nil:
			err = errNoService
		default:
			settled = *s
			settled.config = cloneConfig(s.config)
			return s.state == host.ServiceRunning || s.state == host.ServiceStopped
		}
		return true
	})
	return settled, errors.Join(err, waitErr)
}

// errRaced is returned if the service changed while its start was prepared.
var errRaced = errors.New("the service changed in the meantime")

// launchService starts the process of a stopped service.
func (m *Machine) launchService(name string) error {
	config, boot, err := m.claimStart(name)
	if err != nil {
		return err
	}
	words := host.SplitCommandLine(config.CommandLine)
	image, data, err := m.loadExecutable(words[0])
	var program Program
	if err == nil {
		program, err = m.findProgram(data)
	}
	m.lock()
	defer m.unlock()
	s := m.services[foldCase(name)]
	if m.boots != boot || s == nil || s.state != host.ServiceStartPending {
		return errRaced
	}
	if err == nil {
		err = m.simulatedStartError(s)
	}
	if err != nil {
		s.state = host.ServiceStopped
		m.journal.Append(KindService, fmt.Sprintf("%s does not start: %v", name, err), 0)
		if s.deleted {
			delete(m.services, foldCase(name))
		}
		return fmt.Errorf("run %s: %w", config.CommandLine, err)
	}
	s.process = m.newProcess(&Process{
		Parent: m.processNamed("services.exe"), Args: words[1:], Service: config.Name, Environ: m.serviceEnvironment(config),
		serviceCommandLine: config.CommandLine,
	}, image)
	s.state = host.ServiceRunning
	m.run(s.process, program, s.last)
	m.journal.appendEntry(KindService, name+" runs", 0, s.process.PID)
	return nil
}

// claimStart marks a stopped service as starting.
func (m *Machine) claimStart(name string) (config host.ServiceConfig, boot int, err error) {
	m.lock()
	defer m.unlock()
	s := m.services[foldCase(name)]
	if s == nil || s.state != host.ServiceStopped || s.deleted || m.power < powerBooting {
		return host.ServiceConfig{}, 0, errRaced
	}
	s.state = host.ServiceStartPending
	if foldCase(name) == foldCase(hnsService) {
		m.hnsDeviceless = m.hasDevicelessDisabled()
	}
	m.changes.notifyWaiters()
	return cloneConfig(s.config), m.boots, nil
}

// simulatedStartError returns the simulated failure of the service's start.
func (m *Machine) simulatedStartError(s *service) error {
	code, bad := m.faults.badStarts[foldCase(s.config.Name)]
	if !bad {
		return nil
	}
	s.exitCode = code
	return failedStart{s.config.Name, code}
}

// delayedStartDelay is the delay of services with a delayed start after the other automatic services
// (AutoStartDelay).
const delayedStartDelay = 2 * time.Minute

// startAutomaticServices starts the services for the boot, ordered by name; each start includes the dependencies.
func (m *Machine) startAutomaticServices(up context.Context) {
	m.lock()
	services, first := m.queryServices(nil), m.boots == 1
	m.unlock()
	var delayed []host.Service
	for _, s := range services {
		byHand := first && s.Name == sshService
		switch {
		case s.StartType != host.StartAutomatic && !byHand:
		case s.DelayedStart && !byHand:
			delayed = append(delayed, s)
		default:
			m.startAtBoot(up, s.Name)
		}
	}
	if len(delayed) > 0 {
		m.programs.Add(1)
		go m.startDelayedServices(up, delayed, m.clock.NewTimer(delayedStartDelay))
	}
}

func (m *Machine) startAtBoot(up context.Context, name string) {
	if err := m.startService(up, name, nil); err != nil && up.Err() == nil {
		m.journal.Append(KindService, fmt.Sprintf("%s does not start at boot: %v", name, err), 0)
	}
}

func (m *Machine) startDelayedServices(up context.Context, list []host.Service, timer clock.Timer) {
	defer m.programs.Done()
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-up.Done():
		return
	}
	for _, s := range list {
		m.startAtBoot(up, s.Name)
	}
}
