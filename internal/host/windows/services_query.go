//go:build windows

// The command line, start type and recovery actions of a service are read with QueryServiceConfig and
// QueryServiceConfig2. service_key.go reads the rest.

package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Query returns the named services, or all services except drivers, with their original names. For drivers, and for
// services with a configuration hidden even from administrators, only name, display name and state are known.
func (services) Query(ctx context.Context, names ...string) (list []host.Service, err error) {
	err = runDetached(ctx, func() error {
		list, err = queryServices(ctx, names)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func queryServices(ctx context.Context, names []string) ([]host.Service, error) {
	m, err := connectManager(windows.SC_MANAGER_CONNECT | windows.SC_MANAGER_ENUMERATE_SERVICE)
	if err != nil {
		return nil, err
	}
	defer m.close()
	types := uint32(windows.SERVICE_WIN32)
	if len(names) > 0 {
		types |= windows.SERVICE_DRIVER
	}
	entries, err := m.list(types)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b serviceEntry) int {
		return strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name))
	})
	list := make([]host.Service, 0, len(entries))
	for _, entry := range pickServices(entries, names) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		view, err := m.readService(entry)
		if errors.Is(err, host.ErrNotExist) {
			continue // deleted in the meantime
		}
		if err != nil {
			return nil, fmt.Errorf("query service %s: %w", entry.name, err)
		}
		list = append(list, view)
	}
	return list, nil
}

// pickServices returns the named services in the order of the names, or all services if no name is given.
func pickServices(entries []serviceEntry, names []string) []serviceEntry {
	if len(names) == 0 {
		return entries
	}
	var picked []serviceEntry
	for _, name := range names {
		for _, entry := range entries {
			if strings.EqualFold(entry.name, name) {
				picked = append(picked, entry)
				break
			}
		}
	}
	return picked
}

// readService returns a service with its configuration.
func (m manager) readService(entry serviceEntry) (host.Service, error) {
	view := host.Service{
		ServiceConfig: host.ServiceConfig{Name: entry.name, DisplayName: explicitDisplayName(entry.name, entry.displayName)},
		State:         decodeState(entry.status.CurrentState),
		PID:           int(entry.status.ProcessId),
	}
	if view.State == host.ServiceStopped {
		view.PID, view.ExitCode = 0, exitCode(entry.status.Win32ExitCode, entry.status.ServiceSpecificExitCode)
	}
	if view.PID != 0 {
		view.RunningCommandLine = processCommandLine(entry.status.ProcessId)
	}
	if entry.status.ServiceType&windows.SERVICE_DRIVER != 0 {
		return view, nil
	}
	err := m.readConfig(&view.ServiceConfig)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return view, nil
	}
	return view, err
}

// readConfig reads the configuration of the service config.Name.
func (m manager) readConfig(config *host.ServiceConfig) error {
	s, err := m.openService(config.Name, windows.SERVICE_QUERY_CONFIG)
	if err != nil {
		return err
	}
	defer s.close()
	base, err := s.baseConfig()
	if err != nil {
		return err
	}
	config.CommandLine, config.StartType = base.commandLine, base.start
	actions, err := s.readRecovery()
	if err != nil {
		return err
	}
	decodeRecovery(actions, config)
	if config.DelayedStart, err = s.readFlag("delayed start", windows.SERVICE_CONFIG_DELAYED_AUTO_START_INFO); err != nil {
		return err
	}
	key, err := openServiceKey(config.Name)
	if err != nil {
		return err
	}
	defer key.close()
	return key.read(config)
}

// baseConfig is the used part of a QueryServiceConfig result.
type baseConfig struct {
	commandLine string
	start       host.StartType
}

func (s service) baseConfig() (baseConfig, error) {
	buffer, err := s.callWithBuffer("configuration", func(buffer *byte, size uint32, needed *uint32) error {
		return windows.QueryServiceConfig(s.Handle, (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(buffer)), size, needed)
	})
	if err != nil {
		return baseConfig{}, err
	}
	answer := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
	return baseConfig{windows.UTF16PtrToString(answer.BinaryPathName), decodeStartType(answer.StartType)}, nil
}

// callWithBuffer runs call with a buffer that grows until the result fits. The buffer consists of 64-bit words for the
// alignment of its structures.
func (s service) callWithBuffer(what string, call func(buffer *byte, size uint32, needed *uint32) error) ([]uint64, error) {
	buffer := make([]uint64, 1<<10/8)
	for {
		var needed uint32
		err := call((*byte)(unsafe.Pointer(&buffer[0])), uint32(len(buffer)*8), &needed)
		if err == nil {
			return buffer, nil
		}
		if !errors.Is(err, windows.ERROR_INSUFFICIENT_BUFFER) || int(needed) <= len(buffer)*8 {
			return nil, fmt.Errorf("read the %s of service %s: %w", what, s.Name, translateError(err))
		}
		buffer = make([]uint64, needed/8+1)
	}
}

// readRecovery returns the recovery actions, which are empty on systems without recovery actions.
func (s service) readRecovery() (r recovery, err error) {
	buffer, err := s.callWithBuffer("recovery actions", func(buffer *byte, size uint32, needed *uint32) error {
		return windows.QueryServiceConfig2(s.Handle, windows.SERVICE_CONFIG_FAILURE_ACTIONS, buffer, size, needed)
	})
	if errors.Is(err, windows.ERROR_INVALID_LEVEL) {
		return recovery{}, nil
	}
	if err != nil {
		return recovery{}, err
	}
	answer := (*windows.SERVICE_FAILURE_ACTIONS)(unsafe.Pointer(&buffer[0]))
	r = recovery{
		resetPeriod: answer.ResetPeriod,
		command:     windows.UTF16PtrToString(answer.Command), rebootMessage: windows.UTF16PtrToString(answer.RebootMsg),
	}
	if answer.Actions != nil {
		for _, action := range unsafe.Slice(answer.Actions, int(answer.ActionsCount)) {
			r.actions = append(r.actions, recoveryAction{action.Type, action.Delay})
		}
	}
	r.afterErrors, err = s.readFlag("recovery after errors", windows.SERVICE_CONFIG_FAILURE_ACTIONS_FLAG)
	return r, err
}

// readFlag returns the BOOL of an information level that contains nothing else, and false on systems without the level.
func (s service) readFlag(what string, level uint32) (bool, error) {
	buffer, err := s.callWithBuffer(what, func(buffer *byte, size uint32, needed *uint32) error {
		return windows.QueryServiceConfig2(s.Handle, level, buffer, size, needed)
	})
	if errors.Is(err, windows.ERROR_INVALID_LEVEL) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return *(*int32)(unsafe.Pointer(&buffer[0])) != 0, nil
}
