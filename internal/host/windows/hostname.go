//go:build windows

// The computer name is set with SetComputerNameEx in its form ComputerNamePhysicalDnsHostname, which sets the NetBIOS
// name along with it. The name in force comes from GetComputerNameEx, the one that waits for a reboot from the
// registry, where Windows keeps both. NetGetJoinInformation says whether the machine is a member of a domain.

package windows

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

// tcpipKey has the DNS host name: "Hostname" in force, "NV Hostname" from the next boot on.
const tcpipKey = `SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`

func readNames(info *host.SystemInfo) error {
	var err error
	if info.HostName, err = computerName(windows.ComputerNameDnsHostname); err != nil {
		return fmt.Errorf("query the host name: %w", err)
	}
	if info.Domain, err = computerName(windows.ComputerNameDnsDomain); err != nil {
		return fmt.Errorf("query the domain: %w", err)
	}
	next, err := nextHostName()
	if err != nil {
		return err
	}
	if !strings.EqualFold(next, info.HostName) { // another case alone is no other name, and no reason to restart
		info.PendingHostName = next
	}
	return nil
}

// computerName asks for one form of the name; empty when there is none.
func computerName(form uint32) (string, error) {
	size := uint32(256)
	for {
		buffer := make([]uint16, size)
		err := windows.GetComputerNameEx(form, &buffer[0], &size)
		if err == nil {
			return windows.UTF16ToString(buffer[:size]), nil
		}
		if !errors.Is(err, windows.ERROR_MORE_DATA) || int(size) <= len(buffer) {
			return "", err
		}
	}
}

// nextHostName returns the host name from the next boot on; empty when the registry does not tell.
func nextHostName() (string, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, tcpipKey, registry.QUERY_VALUE)
	if err != nil {
		return "", fmt.Errorf("open the registry key %s: %w", tcpipKey, err)
	}
	defer func() { _ = key.Close() }()
	name, _, err := key.GetStringValue("NV Hostname")
	if err != nil && !errors.Is(err, registry.ErrNotExist) {
		return "", fmt.Errorf("read the host name of the next boot: %w", err)
	}
	return name, nil
}

// computerNamePhysicalDNSHostname is the form of COMPUTER_NAME_FORMAT that names the machine itself, not a cluster that
// it is part of.
const computerNamePhysicalDNSHostname = 5

// SetHostName sets the computer name from the next boot on.
func (system) SetHostName(ctx context.Context, name string) error {
	if err := checkHostName(name); err != nil {
		return fmt.Errorf("set computer name %q: %w", name, err)
	}
	err := await(ctx, func() error {
		if err := checkMembership(name); err != nil {
			return err
		}
		text, err := windows.UTF16PtrFromString(name)
		if err != nil {
			return err
		}
		set := windows.NewLazySystemDLL("kernel32.dll").NewProc("SetComputerNameExW")
		if done, _, err := set.Call(computerNamePhysicalDNSHostname, uintptr(unsafe.Pointer(text))); done == 0 {
			return translate(err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set computer name %q: %w", name, err)
	}
	return nil
}

// checkMembership refuses another name for a member of a domain: SetComputerNameEx would change it on the machine
// alone, and the domain would not let the machine in under it.
func checkMembership(name string) error {
	present, err := computerName(windows.ComputerNameDnsHostname)
	if err != nil || strings.EqualFold(present, name) {
		return err
	}
	var joined *uint16
	var kind uint32
	if err := windows.NetGetJoinInformation(nil, &joined, &kind); err != nil {
		return fmt.Errorf("check whether the machine is a member of a domain: %w", err)
	}
	defer func() { _ = windows.NetApiBufferFree((*byte)(unsafe.Pointer(joined))) }()
	if kind == windows.NetSetupDomainName {
		return fmt.Errorf("domain %s: %w", windows.UTF16PtrToString(joined), host.ErrDomainMember)
	}
	return nil
}
