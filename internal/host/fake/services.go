package fake

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// service is one entry of the service control manager, guarded by the machine's lock.
type service struct {
	config   host.ServiceConfig
	state    host.ServiceState
	process  *Process // nil while stopped
	last     *Process // the process of the last run
	exitCode int      // of the last run
	deleted  bool     // marked for deletion: deleted when stopped

	crashes   int // since the last reset of the count
	lastCrash time.Time
}

func (s *service) toHostService() host.Service {
	v := host.Service{ServiceConfig: cloneConfig(s.config), State: s.state, ExitCode: s.exitCode}
	if s.process != nil {
		v.PID, v.ExitCode = s.process.PID, 0
		v.RunningCommandLine = s.process.serviceCommandLine
	}
	return v
}

// cloneConfig returns a deep copy; empty lists are nil.
func cloneConfig(config host.ServiceConfig) host.ServiceConfig {
	config.Dependencies = append([]string(nil), config.Dependencies...)
	config.Environment = append([]string(nil), config.Environment...)
	config.SetRecovery(config.FullRecovery())
	return config
}

// Service returns a service and its state, or false if the service does not exist.
func (m *Machine) Service(name string) (host.Service, bool) {
	m.lock()
	defer m.unlock()
	s := m.services[foldCase(name)]
	if s == nil {
		return host.Service{}, false
	}
	return s.toHostService(), true
}

// IsSSHRunning reports whether the service of the SSH server runs.
func (m *Machine) IsSSHRunning() bool {
	service, there := m.Service(sshService)
	return there && service.State == host.ServiceRunning
}

// serviceManager implements host.Services for one process.
type serviceManager struct{ p *Process }

func (s serviceManager) Query(ctx context.Context, names ...string) (list []host.Service, err error) {
	err = s.p.runOperation(ctx, "Services", "Query", strings.Join(names, " "), func(m *Machine) error {
		list = m.queryServices(names)
		return nil
	})
	return list, err
}

func (m *Machine) queryServices(names []string) []host.Service {
	if len(names) == 0 {
		names = m.serviceNames()
	}
	list := make([]host.Service, 0, len(names))
	for _, name := range names {
		if s := m.services[foldCase(name)]; s != nil {
			list = append(list, s.toHostService())
		}
	}
	return list
}

// serviceNames returns the names of all services, sorted.
func (m *Machine) serviceNames() []string {
	names := make([]string, 0, len(m.services))
	for _, s := range m.services {
		names = append(names, s.config.Name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(foldCase(a), foldCase(b)) })
	return names
}

func (s serviceManager) Configure(ctx context.Context, config host.ServiceConfig) error {
	return s.p.runOperation(ctx, "Services", "Configure", config.Name, func(m *Machine) error {
		if err := m.configureService(config); err != nil {
			return fmt.Errorf("configure service %s: %w", config.Name, err)
		}
		s.p.recordEntry(KindService, "configure "+config.Name, 0)
		return nil
	})
}

func (m *Machine) configureService(config host.ServiceConfig) error {
	if err := checkConfig(config); err != nil {
		return err
	}
	s := m.services[foldCase(config.Name)]
	if s == nil {
		s = &service{state: host.ServiceStopped}
		m.services[foldCase(config.Name)] = s
	} else {
		if s.deleted {
			return errMarkedDeleted
		}
		config.Name = s.config.Name // the name keeps its case
	}
	s.config = cloneConfig(config)
	if len(config.FullRecovery().Actions) == 0 {
		s.config.ResetPeriod = 0 // Windows stores no period without actions
	}
	return nil
}

func (s serviceManager) SetStartType(ctx context.Context, name string, start host.StartType) error {
	return s.p.runOperation(ctx, "Services", "SetStartType", name, func(m *Machine) error {
		found := m.services[foldCase(name)]
		if found == nil {
			return fmt.Errorf("set the start type of service %s: %w", name, errNoService)
		}
		config := cloneConfig(found.config)
		config.StartType = start
		if err := m.configureService(config); err != nil {
			return fmt.Errorf("set the start type of service %s: %w", name, err)
		}
		s.p.recordEntry(KindService, "start "+name+" "+string(start), 0)
		return nil
	})
}

// checkConfig validates a configuration like the service control manager. Dependencies need not exist.
func checkConfig(config host.ServiceConfig) error {
	if config.Name == "" || len(config.Name) > 256 || strings.ContainsAny(config.Name, `/\`) {
		return errServiceName
	}
	if len(host.SplitCommandLine(config.CommandLine)) == 0 {
		return fmt.Errorf("%w (the command line is empty)", errParameter)
	}
	switch config.StartType {
	case host.StartAutomatic, host.StartManual, host.StartDisabled:
	default:
		return fmt.Errorf("%w (start type %q)", errParameter, config.StartType)
	}
	for _, dependency := range config.Dependencies {
		if strings.EqualFold(dependency, config.Name) {
			return errCircular
		}
	}
	for _, entry := range config.Environment {
		if strings.IndexByte(entry, '=') < 1 {
			return fmt.Errorf("%w (an environment entry without a name)", errParameter)
		}
	}
	return checkRecovery(config)
}

// checkRecovery rejects action kinds and times that Windows cannot store.
func checkRecovery(config host.ServiceConfig) error {
	if config.ResetPeriod < 0 || config.ResetPeriod%time.Second != 0 {
		return fmt.Errorf("%w (reset period %s)", errParameter, config.ResetPeriod)
	}
	for _, action := range config.FullRecovery().Actions {
		switch action.Kind {
		case host.RecoveryNone, host.RecoveryRestart, host.RecoveryReboot, host.RecoveryCommand, host.RecoveryOwnRestart:
		default:
			return fmt.Errorf("%w (recovery action %q)", errParameter, action.Kind)
		}
		if action.Delay < 0 || action.Delay%time.Millisecond != 0 {
			return fmt.Errorf("%w (a delay of %s)", errParameter, action.Delay)
		}
	}
	return nil
}

func (s serviceManager) Delete(ctx context.Context, name string) error {
	return s.p.runOperation(ctx, "Services", "Delete", name, func(m *Machine) error {
		found := m.services[foldCase(name)]
		if found == nil {
			return fmt.Errorf("delete service %s: %w", name, errNoService)
		}
		s.p.recordEntry(KindService, "delete "+name, 0)
		if found.state != host.ServiceStopped {
			found.deleted = true // as DeleteService does: deleted when stopped
			return fmt.Errorf("delete running service %s: %w", name, errMarkedDeleted)
		}
		delete(m.services, foldCase(name))
		return nil
	})
}

// serviceEnded records the end of a service's process.
func (m *Machine) serviceEnded(p *Process) {
	s := m.services[foldCase(p.Service)]
	if s == nil || s.process != p {
		return
	}
	s.process, s.last, s.exitCode, s.state = nil, p, p.exitCode, host.ServiceStopped
	crashed := !p.stopped && p.exitCode != 0 && m.power >= powerBooting
	recovers := crashed && (!p.reported || s.config.FullRecovery().AfterErrors)
	if crashed {
		m.journal.appendEntry(KindService, fmt.Sprintf("crash %s, exit code %d", s.config.Name, p.exitCode), 0, p.PID)
	}
	switch {
	case s.deleted:
		delete(m.services, foldCase(p.Service))
	case recovers:
		m.recoverService(s)
	}
	m.changes.notifyWaiters()
}
