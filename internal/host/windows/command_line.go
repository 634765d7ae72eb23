//go:build windows

// A process's command line stands in its process environment block (PEB), which NtQueryInformationProcess finds and
// ReadProcessMemory reads; winternl.h documents both structures as far as they are used here. WMI would tell it as
// well, at the price of a COM call for each.

package windows

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// The structures below hold addresses in the other process, which must not be pointers here.
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
		length, _ uint16 // bytes: the text and its buffer
		address   uintptr
	}
)

// processCommandLine is what a process was started with; empty when Windows does not tell, as of a protected process.
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
