//go:build windows

// The process environment block (PEB) contains the command line of a process. NtQueryInformationProcess returns the
// address of the PEB, and ReadProcessMemory reads the memory. winternl.h documents the used parts of both
// structures. WMI also reports the command line but needs a COM call per process.

package windows

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// The structures below hold addresses in the other process, which must not be Go pointers.
type (
	// processBasics is PROCESS_BASIC_INFORMATION.
	processBasics struct {
		exitStatus                 uintptr
		peb                        uintptr
		affinity, priority         uintptr
		processID, parentProcessID uintptr
	}
	// foreignString is UNICODE_STRING.
	foreignString struct {
		length, _ uint16 // in bytes: text and buffer
		address   uintptr
	}
)

// processCommandLine returns the command line of a process, or "" if Windows does not report it, for example for a
// protected process.
func processCommandLine(pid uint32) string {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_INFORMATION|windows.PROCESS_VM_READ, false, pid)
	if err != nil {
		return ""
	}
	defer func() { _ = windows.CloseHandle(process) }()
	var basics processBasics
	err = windows.NtQueryInformationProcess(process, windows.ProcessBasicInformation, unsafe.Pointer(&basics),
		uint32(unsafe.Sizeof(basics)), nil)
	if err != nil || basics.peb == 0 {
		return ""
	}
	parameters, err := readForeign[uintptr](process, basics.peb+unsafe.Offsetof(windows.PEB{}.ProcessParameters))
	if err != nil || parameters == 0 {
		return ""
	}
	text, err := readForeign[foreignString](process,
		parameters+unsafe.Offsetof(windows.RTL_USER_PROCESS_PARAMETERS{}.CommandLine))
	if err != nil || text.length < 2 {
		return ""
	}
	units := make([]uint16, text.length/2)
	err = windows.ReadProcessMemory(process, text.address, (*byte)(unsafe.Pointer(&units[0])), uintptr(len(units)*2), nil)
	if err != nil {
		return ""
	}
	return windows.UTF16ToString(units)
}

// readForeign reads a value without pointers from the memory of a process.
func readForeign[V any](process windows.Handle, address uintptr) (value V, err error) {
	err = windows.ReadProcessMemory(process, address, (*byte)(unsafe.Pointer(&value)), unsafe.Sizeof(value), nil)
	return value, err
}
