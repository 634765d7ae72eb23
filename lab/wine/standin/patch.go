package standin

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Libraries that patched Wine libraries forward to.
const (
	ntfsLibrary     = "wmco-lab-ntfs"
	servicesLibrary = "wmco-lab-services"
	routesLibrary   = "wmco-lab-routes"
	eventsLibrary   = "wmco-lab-events"
	powerLibrary    = "wmco-lab-power"
)

// forwards are the functions that patched Wine libraries forward.
var forwards = map[string][]string{
	"kernel32.dll": {
		"CreateSymbolicLinkW", "CreateFileW", "CreateDirectoryW", "GetFileAttributesW",
		"GetFileAttributesExW", "FindFirstFileW",
		"GetFileInformationByHandle", "GetFileInformationByHandleEx", "DeviceIoControl", "DeleteFileW",
		"RemoveDirectoryW", "MoveFileExW",
		"GetProcAddress",
	},
	"advapi32.dll": {
		"GetSecurityInfo", "SetSecurityInfo",
		"OpenServiceW", "CreateServiceW", "CloseServiceHandle", "ChangeServiceConfig2W", "QueryServiceConfig2W",
		"RegisterEventSourceW", "DeregisterEventSource", "ReportEventW",
		"OpenEventLogW", "CloseEventLog", "ReadEventLogW", "ClearEventLogW",
		"InitiateSystemShutdownExW",
	},
	"user32.dll":   {"ExitWindowsEx"},
	"iphlpapi.dll": {"CreateIpForwardEntry2", "DeleteIpForwardEntry2", "InitializeIpForwardEntry"},
}

// renamed maps functions that Wine lacks to the exports that are renamed for them: a neighbor in the order of
// names, which Windows' loader searches, that no program on a host calls.
var renamed = map[string]string{"CreateIpForwardEntry2": "CreateIpNetEntry",
	"DeleteIpForwardEntry2": "DeleteIpNetEntry", "InitializeIpForwardEntry": "InternalCreateIpForwardEntry"}

// targetLibrary returns the library that a function is forwarded to.
func targetLibrary(function string) string {
	switch {
	case strings.Contains(function, "Service"):
		return servicesLibrary
	case strings.Contains(function, "IpForward"):
		return routesLibrary
	case strings.Contains(function, "Event"):
		return eventsLibrary
	case function == "InitiateSystemShutdownExW", function == "ExitWindowsEx":
		return powerLibrary
	}
	return ntfsLibrary
}

// WineLibraries is the directory of Wine's libraries on Debian, below the root of a system.
const WineLibraries = "usr/lib/x86_64-linux-gnu/wine/x86_64-windows"

// PatchWine makes Wine's libraries below the root of a Debian system forward a few functions to the fake
// libraries:
//   - wmco-lab-ntfs.dll adds symbolic links and access lists.
//   - wmco-lab-services.dll stores recovery actions.
//   - wmco-lab-routes.dll adds and deletes routes.
//   - wmco-lab-events.dll stores events.
//   - wmco-lab-power.dll restarts the host.
//
// From then on, every prefix must have the libraries of Build in System32: patch after the first prefix was
// created. Patching twice changes nothing.
func PatchWine(root string) error {
	for name, functions := range forwards {
		path := filepath.Join(root, WineLibraries, name)
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("patch Wine's %s: %w", name, err)
		}
		if bytes.Contains(content, []byte(targetLibrary(functions[0])+".")) {
			continue
		}
		if err := forwardFunctions(content, functions); err != nil {
			return fmt.Errorf("patch Wine's %s: %w", path, err)
		}
		if err := replaceFile(path, content); err != nil {
			return fmt.Errorf("patch Wine's %s: %w", name, err)
		}
	}
	return nil
}

// exports is the export directory of a library. offset is the position of the address rva in the file; room is
// the free space at the end.
type exports struct {
	content   []byte
	rva       uint32
	size      uint32
	offset    uint32
	freeBytes uint32
}

// forwardFunctions turns exported functions into forwarders: addresses in the export directory that refer to a name
// instead of code. The names are written to the slack after the directory, and the directory grows accordingly.
func forwardFunctions(content []byte, functions []string) error {
	e, directory, err := findExports(content)
	if err != nil {
		return err
	}
	for _, function := range functions {
		exported := function
		if lacking := renamed[function]; lacking != "" {
			exported = lacking
		}
		name, slot, err := e.findSlot(exported)
		if err != nil {
			return err
		}
		if exported != function {
			if err := e.writeText(name, function); err != nil {
				return err
			}
		}
		if err := e.writeText(slot, targetLibrary(function)+"."+function); err != nil {
			return err
		}
	}
	binary.LittleEndian.PutUint32(content[directory+4:], e.size)
	return nil
}

// findExports returns the export directory, and the file position of its entry in the data directory.
func findExports(content []byte) (e exports, directory uint32, err error) {
	file, err := pe.NewFile(bytes.NewReader(content))
	if err != nil {
		return e, 0, err
	}
	header, ok := file.OptionalHeader.(*pe.OptionalHeader64)
	if !ok {
		return e, 0, fmt.Errorf("it is no 64-bit library")
	}
	e = exports{content: content, rva: header.DataDirectory[0].VirtualAddress, size: header.DataDirectory[0].Size}
	// The data directory follows the PE signature (4 bytes), the file header (20) and 112 bytes of the optional header.
	directory = binary.LittleEndian.Uint32(content[0x3c:]) + 4 + 20 + 112
	for _, section := range file.Sections {
		if section.VirtualAddress != e.rva {
			continue
		}
		e.offset = section.Offset
		e.freeBytes = section.Size - e.size
		if used := max(section.VirtualSize, e.size); used > e.size {
			e.freeBytes = section.Size - used
		}
		return e, directory, nil
	}
	return e, 0, fmt.Errorf("its export directory has no section of its own")
}

// writeText appends a text to the directory and writes the address of the text to this position of the file.
func (e *exports) writeText(slot uint32, text string) error {
	if uint32(len(text)+1) > e.freeBytes {
		return fmt.Errorf("there is no room for %s", text)
	}
	copy(e.content[e.offset+e.size:], text+"\x00")
	binary.LittleEndian.PutUint32(e.content[slot:], e.rva+e.size)
	e.size += uint32(len(text) + 1)
	e.freeBytes -= uint32(len(text) + 1)
	return nil
}

// findSlot returns the file positions of the addresses of an exported function's name and of the function.
func (e exports) findSlot(function string) (named, slot uint32, err error) {
	at := func(rva uint32) uint32 { return rva - e.rva + e.offset }
	word := func(offset uint32) uint32 { return binary.LittleEndian.Uint32(e.content[offset:]) }
	count, addresses, names, ordinals := word(e.offset+24), at(word(e.offset+28)), at(word(e.offset+32)),
		at(word(e.offset+36))
	for i := range count {
		name := e.content[at(word(names+4*i)):]
		if end := bytes.IndexByte(name, 0); end < 0 || string(name[:end]) != function {
			continue
		}
		ordinal := uint32(binary.LittleEndian.Uint16(e.content[ordinals+2*i:]))
		return names + 4*i, addresses + 4*ordinal, nil
	}
	return 0, 0, fmt.Errorf("it exports no %s", function)
}
