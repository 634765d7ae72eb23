//go:build windows

// A service is made with CreateService and changed in place with ChangeServiceConfig and ChangeServiceConfig2. Its
// account and its type are left as they are: LocalSystem in a process of its own where the service is new.

package windows

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// changeAccess is what changing a configuration needs. An action that restarts the service asks for the right to start
// it.
const changeAccess = windows.SERVICE_QUERY_CONFIG | windows.SERVICE_CHANGE_CONFIG | windows.SERVICE_START

// Configure creates the service or changes it in place. A second call repairs what a first one that was cut short left
// undone.
func (services) Configure(ctx context.Context, config host.ServiceConfig) error {
	if err := checkConfig(config); err != nil {
		return fmt.Errorf("configure service %s: %w", config.Name, err)
	}
	wanted, err := encodeConfig(config)
	if err != nil {
		return fmt.Errorf("configure service %s: %w", config.Name, err)
	}
	err = await(ctx, func() error {
		m, err := connect(windows.SC_MANAGER_CONNECT | windows.SC_MANAGER_CREATE_SERVICE)
		if err != nil {
			return err
		}
		defer m.close()
		return m.configure(ctx, wanted)
	})
	if err != nil {
		return fmt.Errorf("configure service %s: %w", config.Name, err)
	}
	return nil
}

// encodedConfig is a configuration in the form that the calls take.
type encodedConfig struct {
	name, shown, description, commandLine *uint16
	dependencies                          *uint16
	startType                             uint32
	recovery                              recovery
	config                                host.ServiceConfig
}

func encodeConfig(config host.ServiceConfig) (e encodedConfig, err error) {
	e.config = config
	for _, text := range []struct {
		what, from string
		to         **uint16
	}{
		{"name", config.Name, &e.name},
		{"display name", shownName(config), &e.shown},
		{"description", config.Description, &e.description},
		{"command line", config.CommandLine, &e.commandLine},
	} {
		if *text.to, err = windows.UTF16PtrFromString(text.from); err != nil {
			return e, fmt.Errorf("%s: %w", text.what, errNulInString)
		}
	}
	dependencies, err := encodeMultiString(config.Dependencies)
	if err != nil {
		return e, fmt.Errorf("dependencies: %w", err)
	}
	e.dependencies = &dependencies[0]
	if e.startType, err = encodeStartType(config.StartType); err != nil {
		return e, err
	}
	e.recovery, err = encodeRecovery(config)
	return e, err
}

func (m manager) configure(ctx context.Context, wanted encodedConfig) error {
	s, err := m.createOrChange(wanted)
	if err != nil {
		return err
	}
	defer s.close()
	for _, change := range []func() error{
		func() error { return s.setDescription(wanted.description) },
		s.setPromptStart,
		func() error { return s.setRecovery(wanted.recovery) },
		func() error { return setServiceEnvironment(wanted.config.Name, wanted.config.Environment) },
	} {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := change(); err != nil {
			return err
		}
	}
	return nil
}

// createOrChange returns the service, open for changes.
func (m manager) createOrChange(wanted encodedConfig) (service, error) {
	s, err := m.open(wanted.config.Name, changeAccess)
	if errors.Is(err, host.ErrNotExist) {
		handle, err := windows.CreateService(m.handle, wanted.name, wanted.shown, changeAccess,
			windows.SERVICE_WIN32_OWN_PROCESS,
			wanted.startType, windows.SERVICE_ERROR_NORMAL, wanted.commandLine, nil, nil, wanted.dependencies, nil, nil)
		if err != nil {
			return service{}, fmt.Errorf("create it: %w", translate(err))
		}
		return service{handle, wanted.config.Name}, nil
	}
	if err != nil {
		return service{}, err
	}
	err = windows.ChangeServiceConfig(s.handle, windows.SERVICE_NO_CHANGE, wanted.startType, windows.SERVICE_NO_CHANGE,
		wanted.commandLine, nil, nil, wanted.dependencies, nil, nil, wanted.shown)
	if err != nil {
		s.close()
		return service{}, fmt.Errorf("change it: %w", translate(err))
	}
	return s, nil
}

func (s service) setDescription(text *uint16) error {
	info := windows.SERVICE_DESCRIPTION{Description: text}
	err := windows.ChangeServiceConfig2(s.handle, windows.SERVICE_CONFIG_DESCRIPTION, (*byte)(unsafe.Pointer(&info)))
	if err != nil {
		return fmt.Errorf("set its description: %w", translate(err))
	}
	return nil
}

// setPromptStart takes away a delay of automatic starts, which someone may have set: a node waits for its services
// after a boot. Windows knows such a delay for every service; where it does not, there is none to take away.
func (s service) setPromptStart() error {
	var info windows.SERVICE_DELAYED_AUTO_START_INFO
	err := windows.ChangeServiceConfig2(s.handle, windows.SERVICE_CONFIG_DELAYED_AUTO_START_INFO,
		(*byte)(unsafe.Pointer(&info)))
	if err != nil && !errors.Is(err, windows.ERROR_INVALID_LEVEL) {
		return fmt.Errorf("remove its delayed start: %w", translate(err))
	}
	return nil
}

// setRecovery sets what happens after a crash. A service that reports an exit code other than 0 counts as crashed, not
// only one whose process vanishes: that is how a Go program ends that fails.
func (s service) setRecovery(wanted recovery) error {
	// No actions behind a pointer that is not null take away those that are there.
	actions := make([]windows.SC_ACTION, max(1, len(wanted.actions)))
	for i, action := range wanted.actions {
		actions[i] = windows.SC_ACTION{Type: action.kind, Delay: action.delay}
	}
	info := windows.SERVICE_FAILURE_ACTIONS{
		ResetPeriod: wanted.resetPeriod, ActionsCount: uint32(len(wanted.actions)), Actions: &actions[0],
	}
	flag := windows.SERVICE_FAILURE_ACTIONS_FLAG{}
	if len(wanted.actions) > 0 {
		flag.FailureActionsOnNonCrashFailures = 1
	}
	err := windows.ChangeServiceConfig2(s.handle, windows.SERVICE_CONFIG_FAILURE_ACTIONS, (*byte)(unsafe.Pointer(&info)))
	if err == nil {
		err = windows.ChangeServiceConfig2(s.handle, windows.SERVICE_CONFIG_FAILURE_ACTIONS_FLAG,
			(*byte)(unsafe.Pointer(&flag)))
	}
	if errors.Is(err, windows.ERROR_INVALID_LEVEL) && len(wanted.actions) == 0 {
		return nil // where Windows keeps no recovery actions, there are none
	}
	if err != nil {
		return fmt.Errorf("set its recovery actions: %w", translate(err))
	}
	return nil
}

// Delete removes a stopped service. One that is not stopped is marked, so that it goes when it stops, and ErrInUse says
// so.
func (services) Delete(ctx context.Context, name string) error {
	err := await(ctx, func() error {
		m, err := connect(windows.SC_MANAGER_CONNECT)
		if err != nil {
			return err
		}
		defer m.close()
		s, err := m.open(name, windows.DELETE|windows.SERVICE_QUERY_STATUS)
		if err != nil {
			return err
		}
		defer s.close()
		status, err := s.status()
		if err != nil {
			return err
		}
		if err := windows.DeleteService(s.handle); err != nil {
			return translate(err)
		}
		if decodeState(status.CurrentState) != host.ServiceStopped {
			return fmt.Errorf("it runs: %w", translate(windows.ERROR_SERVICE_MARKED_FOR_DELETE))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete service %s: %w", name, err)
	}
	return nil
}
