//go:build windows

// Command administrator does on a host what somebody with a mind of his own might: it changes services behind the agent's back.
package main

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func main() {
	verbs := map[string]func(windows.Handle, []string) error{"stop": stop, "delete": remove, "set": set, "get": get, "state": state}
	if len(os.Args) < 3 || verbs[os.Args[1]] == nil {
		fail(fmt.Errorf("usage: administrator stop|delete|set|get|state SERVICE [COMMAND LINE]"))
	}
	manager, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	fail(err)
	name, err := windows.UTF16PtrFromString(os.Args[2])
	fail(err)
	service, err := windows.OpenService(manager, name, windows.SERVICE_ALL_ACCESS)
	fail(err)
	fail(verbs[os.Args[1]](service, os.Args[3:]))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func stop(service windows.Handle, _ []string) error {
	return windows.ControlService(service, windows.SERVICE_CONTROL_STOP, &windows.SERVICE_STATUS{})
}

func remove(service windows.Handle, _ []string) error { return windows.DeleteService(service) }

// set gives the service another command line.
func set(service windows.Handle, args []string) error {
	line, err := windows.UTF16PtrFromString(args[0])
	if err != nil {
		return err
	}
	const keep = windows.SERVICE_NO_CHANGE
	return windows.ChangeServiceConfig(service, keep, keep, keep, line, nil, nil, nil, nil, nil, nil)
}

// get prints the command line.
func get(service windows.Handle, _ []string) error {
	buffer := make([]byte, 8<<10)
	config := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
	var needed uint32
	if err := windows.QueryServiceConfig(service, config, uint32(len(buffer)), &needed); err != nil {
		return err
	}
	fmt.Println(windows.UTF16PtrToString(config.BinaryPathName))
	return nil
}

// state prints the process of a running service, else nothing.
func state(service windows.Handle, _ []string) error {
	var status windows.SERVICE_STATUS_PROCESS
	var needed uint32
	size := uint32(unsafe.Sizeof(status))
	if err := windows.QueryServiceStatusEx(service, windows.SC_STATUS_PROCESS_INFO, (*byte)(unsafe.Pointer(&status)), size, &needed); err != nil {
		return err
	}
	if status.CurrentState == windows.SERVICE_RUNNING {
		fmt.Println(status.ProcessId)
	}
	return nil
}
