//go:build windows

// The service control manager is called through x/sys/windows/svc/mgr where the functions are equivalent. That
// package opens services with all rights, quotes command lines itself, and reads either a complete configuration or
// nothing. The package omits the service type in the status, and cannot set recovery actions together with their
// command and message. This file implements these calls.

package windows

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc/mgr"
)

// services implements host.Services.
type services struct{}

// manager is a connection to the service control manager.
type manager struct{ handle windows.Handle }

// connectManager opens the service control manager. The caller must close the connection.
func connectManager(access uint32) (manager, error) {
	handle, err := windows.OpenSCManager(nil, nil, access)
	if err != nil {
		return manager{}, fmt.Errorf("open the service control manager: %w", translateError(err))
	}
	return manager{handle}, nil
}

func (m manager) close() { _ = windows.CloseServiceHandle(m.handle) }

// openService opens a service. The caller must close the service. A service marked for deletion is deleted with its
// last handle.
func (m manager) openService(name string, access uint32) (service, error) {
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return service{}, fmt.Errorf("service name %q: %w", name, err)
	}
	handle, err := windows.OpenService(m.handle, text, access)
	if err != nil {
		return service{}, translateError(err)
	}
	return service{&mgr.Service{Name: name, Handle: handle}}, nil
}

// service is an open service.
type service struct{ *mgr.Service }

func (s service) close() { _ = s.Close() }

// withService runs action with a service on a separate connection.
func withService(name string, access uint32, action func(service) error) error {
	m, err := connectManager(windows.SC_MANAGER_CONNECT)
	if err != nil {
		return err
	}
	defer m.close()
	s, err := m.openService(name, access)
	if err != nil {
		return err
	}
	defer s.close()
	return action(s)
}

// serviceEntry is a service in the list of the service control manager.
type serviceEntry struct {
	name, displayName string
	status            windows.SERVICE_STATUS_PROCESS
}

// list returns all services of the given types, in no particular order.
func (m manager) list(types uint32) ([]serviceEntry, error) {
	var entries []serviceEntry
	buffer := make([]uint64, 64<<10/8)
	var resume uint32
	for {
		var needed, count uint32
		err := windows.EnumServicesStatusEx(m.handle, windows.SC_ENUM_PROCESS_INFO, types,
			windows.SERVICE_STATE_ALL,
			(*byte)(unsafe.Pointer(&buffer[0])), uint32(len(buffer)*8), &needed, &count, &resume, nil)
		if err != nil && !errors.Is(err, windows.ERROR_MORE_DATA) {
			return nil, fmt.Errorf("list the services: %w", translateError(err))
		}
		for _, e := range unsafe.Slice((*windows.ENUM_SERVICE_STATUS_PROCESS)(unsafe.Pointer(&buffer[0])), int(count)) {
			entries = append(entries, serviceEntry{
				windows.UTF16PtrToString(e.ServiceName), windows.UTF16PtrToString(e.DisplayName), e.ServiceStatusProcess,
			})
		}
		if err == nil {
			return entries, nil
		}
		if count == 0 {
			buffer = make([]uint64, len(buffer)+int(needed)/8+1)
		}
	}
}

// queryStatus queries the status of the service.
func (s service) queryStatus() (windows.SERVICE_STATUS_PROCESS, error) {
	var status windows.SERVICE_STATUS_PROCESS
	var needed uint32
	err := windows.QueryServiceStatusEx(s.Handle, windows.SC_STATUS_PROCESS_INFO, (*byte)(unsafe.Pointer(&status)),
		uint32(unsafe.Sizeof(status)), &needed)
	if err != nil {
		return status, fmt.Errorf("query the state of service %s: %w", s.Name, translateError(err))
	}
	return status, nil
}
