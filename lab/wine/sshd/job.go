//go:build windows

package main

import (
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// shutdownProgram is the program that Wine's ExitWindowsEx starts. On Windows, the shutdown is not a child of
// the caller and continues after the caller has ended.
const shutdownProgram = "wineboot.exe"

// processIDs is JOBOBJECT_BASIC_PROCESS_ID_LIST with space for the maximum number of processes expected in a
// session.
type processIDs struct {
	assigned, listed uint32
	ids              [1024]uintptr
}

// endJob ends all processes of a job, including processes that start meanwhile, except a shutdown of Windows.
func endJob(job windows.Handle) {
	for {
		var list processIDs
		err := windows.QueryInformationJobObject(job, windows.JobObjectBasicProcessIdList, uintptr(unsafe.Pointer(&list)),
			uint32(unsafe.Sizeof(list)), nil)
		if err != nil {
			_ = windows.TerminateJobObject(job, 1)
			return
		}
		left := false
		for _, pid := range list.ids[:list.listed] {
			left = endProcess(uint32(pid)) || left // process ids have 32 bits
		}
		if !left {
			return
		}
	}
}

// programOf returns the file name of the program that a process runs; empty if the process has ended. A process
// that is just starting may not have a name yet.
func programOf(process windows.Handle) string {
	const patience, pause = 2000, 10 // ms
	for range patience / pause {
		name := make([]uint16, windows.MAX_LONG_PATH)
		size := uint32(len(name))
		if windows.QueryFullProcessImageName(process, 0, &name[0], &size) == nil && size > 0 {
			return filepath.Base(windows.UTF16ToString(name[:size]))
		}
		if event, err := windows.WaitForSingleObject(process, pause); err != nil || event == windows.WAIT_OBJECT_0 {
			return ""
		}
	}
	return ""
}

// endProcess ends a process and waits for its end; false if no process was ended.
func endProcess(pid uint32) bool {
	process, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, pid)
	if err != nil {
		return false // the process has just ended
	}
	defer func() { _ = windows.CloseHandle(process) }()
	if strings.EqualFold(programOf(process), shutdownProgram) {
		return false
	}
	if windows.TerminateProcess(process, 1) != nil {
		return false
	}
	_, _ = windows.WaitForSingleObject(process, windows.INFINITE)
	return true
}
