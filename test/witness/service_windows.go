package main

import (
	"errors"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/windows-machine-config/wmco/test/witness/question"
)

const (
	ownName = "wmco-witness"
	keyRoot = `SYSTEM\CurrentControlSet\Services\`
)

// running is a service with its process according to the service manager.
type running struct {
	name string
	pid  uint32
}

func runningServices() (list []running, err error) {
	manager, err := mgr.Connect()
	if err != nil {
		return nil, err
	}
	defer func() { _ = manager.Disconnect() }()
	names, err := manager.ListServices()
	for _, name := range names {
		wide, err := windows.UTF16PtrFromString(name)
		if err != nil {
			return nil, err
		}
		handle, err := windows.OpenService(manager.Handle, wide, windows.SERVICE_QUERY_STATUS)
		if err != nil {
			continue // only for Windows
		}
		service := &mgr.Service{Name: name, Handle: handle}
		status, err := service.Query()
		if err == nil && status.ProcessId != 0 {
			list = append(list, running{name: name, pid: status.ProcessId})
		}
		_ = service.Close()
	}
	return list, err
}

// probeHNSService queries the Host Networking Service.
func probeHNSService(e *question.Service) error {
	start, err := readNumber(keyRoot+"hns", "Start")
	if errors.Is(err, registry.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	e.There, e.Start = true, uint32(start)
	manager, err := mgr.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = manager.Disconnect() }()
	service, err := manager.OpenService("hns")
	if err != nil {
		return err
	}
	defer service.Close()
	status, err := service.Query()
	e.State = uint32(status.State)
	return err
}

type process struct {
	name   string
	parent uint32
	began  windows.Filetime
}

// processesByID returns the processes by ID.
func processesByID() (map[uint32]process, error) {
	handle, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = windows.CloseHandle(handle) }()
	list := map[uint32]process{}
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(handle, &entry); err == nil; err = windows.Process32Next(handle, &entry) {
		p := process{name: windows.UTF16ToString(entry.ExeFile[:]), parent: entry.ParentProcessID}
		if opened, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, entry.ProcessID); err == nil {
			var end, kernel, user windows.Filetime
			_ = windows.GetProcessTimes(opened, &p.began, &end, &kernel, &user)
			_ = windows.CloseHandle(opened)
		}
		list[entry.ProcessID] = p
	}
	if errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		err = nil
	}
	return list, err
}

// probeLogin follows the parents of this process up to a service. Windows reuses the IDs of ended processes for later
// processes.
func probeLogin(e *question.Login) error {
	all, err := processesByID()
	if err != nil {
		return err
	}
	known, err := runningServices()
	if err != nil {
		return err
	}
	pid := windows.GetCurrentProcessId()
	for range len(all) {
		present, there := all[pid]
		if !there {
			return nil
		}
		e.SSH = e.SSH || strings.HasPrefix(strings.ToLower(present.name), "sshd")
		for _, service := range known {
			if service.pid == pid {
				e.Service = service.name
				return nil
			}
		}
		if parent, there := all[present.parent]; !there || parent.began.Nanoseconds() > present.began.Nanoseconds() {
			return nil
		}
		pid, e.Depth = present.parent, e.Depth+1
	}
	return nil
}
