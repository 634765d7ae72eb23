package windows

import (
	"errors"
	"fmt"
	"strings"
)

// Machine types in the header of an executable, returned by IsWow64Process2.
const (
	machineI386  = 0x014c
	machineAMD64 = 0x8664
	machineARM64 = 0xaa64
)

// architectureName returns the Go name of a machine type.
func architectureName(machine uint16) string {
	switch machine {
	case machineAMD64:
		return "amd64"
	case machineARM64:
		return "arm64"
	case machineI386:
		return "386"
	}
	return fmt.Sprintf("machine type %#x", machine)
}

// bootID returns an identifier for a boot: the boot time according to the clock at that time, in units of 100 ns
// since 1601.
func bootID(bootTime int64, bias uint64) string { return fmt.Sprintf("%016x", uint64(bootTime)-bias) }

var errHostName = errors.New("the format of the specified computer name is invalid: 1 to 63 letters, digits and hyphens, not digits alone")

// checkHostName rejects names that Windows rejects or warns about because DNS does not allow them.
func checkHostName(name string) error {
	if name == "" || len(name) > 63 || strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") ||
		strings.Trim(name, "0123456789") == "" {
		return errHostName
	}
	for _, c := range []byte(name) {
		if c != '-' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return errHostName
		}
	}
	return nil
}
