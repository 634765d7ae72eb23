//go:build windows

// Command administrator changes a host like an independent administrator: it changes services without the agent's
// knowledge. Under any other name it is an idle service, like a foreign program on a host.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
)

// ownName is the file name under which the program is not a service.
const ownName = "administrator.exe"

func main() {
	if self, err := os.Executable(); err == nil && !strings.EqualFold(filepath.Base(self), ownName) {
		exitOnError(svc.Run("", idle{}))
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "processes" {
		exitOnError(printProcesses())
		return
	}
	verbs := map[string]func(windows.Handle, []string) error{"stop": stop, "start": start, "delete": deleteService, "set": setCommandLine,
		"get": get, "state": printProcessID}
	if len(os.Args) < 3 || verbs[os.Args[1]] == nil && os.Args[1] != "create" && os.Args[1] != "list" {
		exitOnError(fmt.Errorf("usage: administrator processes | list SERVICE... | create SERVICE [COMMAND LINE [DEPENDENCY]] | stop|start|delete|set|get|state SERVICE [COMMAND LINE]"))
	}
	manager, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT|windows.SC_MANAGER_CREATE_SERVICE)
	exitOnError(err)
	if os.Args[1] == "list" {
		exitOnError(list(manager, os.Args[2:]))
		return
	}
	name, err := windows.UTF16PtrFromString(os.Args[2])
	exitOnError(err)
	if os.Args[1] == "create" {
		exitOnError(createService(manager, name, os.Args[3:]))
		return
	}
	service, err := windows.OpenService(manager, name, windows.SERVICE_ALL_ACCESS)
	exitOnError(err)
	exitOnError(verbs[os.Args[1]](service, os.Args[3:]))
}

func exitOnError(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func stop(service windows.Handle, _ []string) error {
	return windows.ControlService(service, windows.SERVICE_CONTROL_STOP, &windows.SERVICE_STATUS{})
}

func start(service windows.Handle, _ []string) error { return windows.StartService(service, 0, nil) }

// createService creates a service that starts with Windows.
func createService(manager windows.Handle, name *uint16, args []string) error {
	line, err := windows.UTF16PtrFromString(args[0])
	if err != nil {
		return err
	}
	var dependencies *uint16
	if len(args) > 1 {
		names, err := windows.UTF16FromString(args[1])
		if err != nil {
			return err
		}
		dependencies = &append(names, 0)[0] // a list ends with an empty name
	}
	_, err = windows.CreateService(manager, name, name, windows.SERVICE_ALL_ACCESS, windows.SERVICE_WIN32_OWN_PROCESS,
		windows.SERVICE_AUTO_START, windows.SERVICE_ERROR_NORMAL, line, nil, nil, dependencies, nil, nil)
	return err
}

// idle is a service that waits until it is stopped.
type idle struct{}

// Execute implements svc.Handler.
func (idle) Execute(_ []string, requests <-chan svc.ChangeRequest, changes chan<- svc.Status) (bool, uint32) {
	changes <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	for request := range requests {
		if request.Cmd == svc.Stop || request.Cmd == svc.Shutdown {
			return false, 0
		}
	}
	return false, 0
}

// printProcesses prints the file names of all processes as a JSON list.
func printProcesses() error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return err
	}
	var names []string
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		names = append(names, windows.UTF16ToString(entry.ExeFile[:]))
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(names)
}

func deleteService(service windows.Handle, _ []string) error { return windows.DeleteService(service) }

// setCommandLine sets the command line of the service.
func setCommandLine(service windows.Handle, args []string) error {
	line, err := windows.UTF16PtrFromString(args[0])
	if err != nil {
		return err
	}
	const keep = windows.SERVICE_NO_CHANGE
	return windows.ChangeServiceConfig(service, keep, keep, keep, line, nil, nil, nil, nil, nil, nil)
}

// get prints the command line of the service.
func get(service windows.Handle, _ []string) error {
	line, err := commandLine(service)
	if err == nil {
		fmt.Println(line)
	}
	return err
}

func commandLine(service windows.Handle) (string, error) {
	buffer := make([]byte, 8<<10)
	config := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
	var needed uint32
	if err := windows.QueryServiceConfig(service, config, uint32(len(buffer)), &needed); err != nil {
		return "", err
	}
	return windows.UTF16PtrToString(config.BinaryPathName), nil
}

// printProcessID prints the process ID of a running service, or nothing.
func printProcessID(service windows.Handle, _ []string) error {
	id, err := processID(service)
	if err == nil && id != 0 {
		fmt.Println(id)
	}
	return err
}

// processID returns the process ID of a running service, or 0.
func processID(service windows.Handle) (uint32, error) {
	var status windows.SERVICE_STATUS_PROCESS
	var needed uint32
	size := uint32(unsafe.Sizeof(status))
	if err := windows.QueryServiceStatusEx(service, windows.SC_STATUS_PROCESS_INFO, (*byte)(unsafe.Pointer(&status)), size,
		&needed); err != nil {
		return 0, err
	}
	if status.CurrentState != windows.SERVICE_RUNNING {
		return 0, nil
	}
	return status.ProcessId, nil
}

// list prints command lines and process IDs of services as a JSON object.
func list(manager windows.Handle, names []string) error {
	type state struct {
		CommandLine string
		Process     uint32
	}
	found := map[string]state{}
	for _, name := range names {
		text, err := windows.UTF16PtrFromString(name)
		if err != nil {
			return err
		}
		service, err := windows.OpenService(manager, text, windows.SERVICE_ALL_ACCESS)
		if err != nil {
			return fmt.Errorf("open service %s: %w", name, err)
		}
		line, err := commandLine(service)
		if err != nil {
			return fmt.Errorf("ask for service %s: %w", name, err)
		}
		id, err := processID(service)
		if err != nil {
			return fmt.Errorf("ask for service %s: %w", name, err)
		}
		found[name] = state{line, id}
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}
