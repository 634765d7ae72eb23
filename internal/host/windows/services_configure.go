//go:build windows

// A service is created with CreateService and updated in place with ChangeServiceConfig and ChangeServiceConfig2. An
// update does not change the account and the type. A new service has the account LocalSystem and a separate process.

package windows

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/windows-machine-config/wmco/internal/host"
)

// changeAccess contains the access rights for a configuration change. A recovery action that restarts the service
// requires the right to start it.
const changeAccess = windows.SERVICE_QUERY_CONFIG | windows.SERVICE_CHANGE_CONFIG | windows.SERVICE_START

// Configure creates the service or updates it in place. Another call completes an interrupted call.
func (services) Configure(ctx context.Context, config host.ServiceConfig) error {
	if err := checkConfig(config); err != nil {
		return fmt.Errorf("configure service %s: %w", config.Name, err)
	}
	wanted, err := encodeConfig(config)
	if err != nil {
		return fmt.Errorf("configure service %s: %w", config.Name, err)
	}
	err = runDetached(ctx, func() error {
		m, err := connectManager(windows.SC_MANAGER_CONNECT | windows.SC_MANAGER_CREATE_SERVICE)
		if err != nil {
			return err
		}
		defer m.close()
		return m.configureService(ctx, wanted)
	})
	if err != nil {
		return fmt.Errorf("configure service %s: %w", config.Name, err)
	}
	return nil
}

// encodedConfig is a configuration in the form required by the Windows API.
type encodedConfig struct {
	name, displayName, description, commandLine *uint16
	dependencies                                *uint16
	command, rebootMessage                      *uint16 // of recovery
	startType                                   uint32
	recovery                                    recovery
	config                                      host.ServiceConfig
}

func encodeConfig(config host.ServiceConfig) (e encodedConfig, err error) {
	e.config = config
	if e.recovery, err = encodeRecovery(config); err != nil {
		return e, err
	}
	for _, text := range []struct {
		what, from string
		to         **uint16
	}{
		{"name", config.Name, &e.name},
		{"display name", displayNameOf(config), &e.displayName},
		{"description", config.Description, &e.description},
		{"command line", config.CommandLine, &e.commandLine},
		{"command after crashes", e.recovery.command, &e.command},
		{"restart message", e.recovery.rebootMessage, &e.rebootMessage},
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
	e.startType, err = encodeStartType(config.StartType)
	return e, err
}

func (m manager) configureService(ctx context.Context, wanted encodedConfig) error {
	s, err := m.createOrChange(wanted)
	if err != nil {
		return err
	}
	defer s.close()
	for _, change := range []func() error{
		func() error { return s.setDescription(wanted.description) },
		func() error { return s.setDelayedStart(wanted.config.DelayedStart) },
		func() error { return s.setRecovery(wanted) },
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
	s, err := m.openService(wanted.config.Name, changeAccess)
	if errors.Is(err, host.ErrNotExist) {
		handle, err := windows.CreateService(m.handle, wanted.name, wanted.displayName, changeAccess,
			windows.SERVICE_WIN32_OWN_PROCESS,
			wanted.startType, windows.SERVICE_ERROR_NORMAL, wanted.commandLine, nil, nil, wanted.dependencies, nil, nil)
		if err != nil {
			return service{}, fmt.Errorf("create the service: %w", translateError(err))
		}
		return service{&mgr.Service{Name: wanted.config.Name, Handle: handle}}, nil
	}
	if err != nil {
		return service{}, err
	}
	err = windows.ChangeServiceConfig(s.Handle, windows.SERVICE_NO_CHANGE, wanted.startType, windows.SERVICE_NO_CHANGE,
		wanted.commandLine, nil, nil, wanted.dependencies, nil, nil, wanted.displayName)
	if err != nil {
		s.close()
		return service{}, fmt.Errorf("update the service: %w", translateError(err))
	}
	return s, nil
}

func (s service) setDescription(text *uint16) error {
	info := windows.SERVICE_DESCRIPTION{Description: text}
	err := windows.ChangeServiceConfig2(s.Handle, windows.SERVICE_CONFIG_DESCRIPTION, (*byte)(unsafe.Pointer(&info)))
	if err != nil {
		return fmt.Errorf("set the description: %w", translateError(err))
	}
	return nil
}

// setDelayedStart sets or removes the delay of automatic starts. Another program may have set a delay, but a node
// needs its services after a boot. Windows can store a delay for every service. On systems without support, there is
// no delay to remove.
func (s service) setDelayedStart(delayed bool) error {
	var info windows.SERVICE_DELAYED_AUTO_START_INFO
	if delayed {
		info.IsDelayedAutoStartUp = 1
	}
	err := windows.ChangeServiceConfig2(s.Handle, windows.SERVICE_CONFIG_DELAYED_AUTO_START_INFO,
		(*byte)(unsafe.Pointer(&info)))
	if err != nil && (delayed || !errors.Is(err, windows.ERROR_INVALID_LEVEL)) {
		return fmt.Errorf("set the delayed start: %w", translateError(err))
	}
	return nil
}

// setRecovery replaces the complete reaction to crashes. An empty text removes a command or a message, and an empty
// list behind a non-null pointer removes the actions. With the flag, an exit code other than 0 also counts as a
// crash, because a failed Go program ends with an exit code. Without the flag, only a vanished process counts.
func (s service) setRecovery(wanted encodedConfig) error {
	recovery := wanted.recovery
	if recovery.hasReboot() { // Windows requires the shutdown privilege for a reboot action
		if err := enablePrivilege(shutdownPrivilege); err != nil {
			return fmt.Errorf("set the recovery actions: %w", err)
		}
	}
	actions := make([]windows.SC_ACTION, max(1, len(recovery.actions)))
	for i, action := range recovery.actions {
		actions[i] = windows.SC_ACTION{Type: action.kind, Delay: action.delay}
	}
	info := windows.SERVICE_FAILURE_ACTIONS{
		ResetPeriod: recovery.resetPeriod, RebootMsg: wanted.rebootMessage, Command: wanted.command,
		ActionsCount: uint32(len(recovery.actions)), Actions: &actions[0],
	}
	err := windows.ChangeServiceConfig2(s.Handle, windows.SERVICE_CONFIG_FAILURE_ACTIONS, (*byte)(unsafe.Pointer(&info)))
	if err == nil {
		err = s.SetRecoveryActionsOnNonCrashFailures(recovery.afterErrors)
	}
	if errors.Is(err, windows.ERROR_INVALID_LEVEL) && wanted.config.FullRecovery().Equal(host.Recovery{}) {
		return nil // systems without recovery actions have none to remove
	}
	if err != nil {
		return fmt.Errorf("set the recovery actions: %w", translateError(err))
	}
	return nil
}

// Delete removes a stopped service. Windows only marks a running service for deletion and deletes it after the stop.
// In that case, Delete returns ErrInUse.
func (services) Delete(ctx context.Context, name string) error {
	err := runDetached(ctx, func() error {
		return withService(name, windows.DELETE|windows.SERVICE_QUERY_STATUS, func(s service) error {
			status, err := s.queryStatus()
			if err != nil {
				return err
			}
			if err := s.Delete(); err != nil {
				return translateError(err)
			}
			if decodeState(status.CurrentState) != host.ServiceStopped {
				return fmt.Errorf("the service is running: %w", translateError(windows.ERROR_SERVICE_MARKED_FOR_DELETE))
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("delete service %s: %w", name, err)
	}
	return nil
}
