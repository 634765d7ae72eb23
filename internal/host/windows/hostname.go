//go:build windows

// SetComputerNameEx with ComputerNamePhysicalDnsHostname sets the computer name and the NetBIOS name.
// GetComputerNameEx returns the current name. The name that waits for a reboot is read from the registry, where
// Windows stores both. NetGetJoinInformation reports whether the machine is a member of a domain.

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

// tcpipKey contains the DNS host names: "Hostname" is the current name, and "NV Hostname" is the name after the next
// boot.
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
	if !strings.EqualFold(next, info.HostName) { // a different case needs no restart
		info.PendingHostName = next
	}
	return nil
}

// computerName returns one form of the name, or "" if the name is not set.
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

// nextHostName returns the host name after the next boot, or "" if the registry does not contain it.
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

// computerNamePhysicalDNSHostname is the COMPUTER_NAME_FORMAT value for the name of the machine itself, not of a
// cluster that contains the machine.
const computerNamePhysicalDNSHostname = 5

// SetHostName sets the computer name that applies from the next boot.
func (system) SetHostName(ctx context.Context, name string) error {
	if err := checkHostName(name); err != nil {
		return fmt.Errorf("set computer name %q: %w", name, err)
	}
	err := runDetached(ctx, func() error {
		if err := checkMembership(name); err != nil {
			return err
		}
		text, err := windows.UTF16PtrFromString(name)
		if err != nil {
			return err
		}
		set := windows.NewLazySystemDLL("kernel32.dll").NewProc("SetComputerNameExW")
		if done, _, err := set.Call(computerNamePhysicalDNSHostname, uintptr(unsafe.Pointer(text))); done == 0 {
			return translateError(err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set computer name %q: %w", name, err)
	}
	return nil
}

// checkMembership rejects a new name for a member of a domain. SetComputerNameEx would change the name only on the
// machine, and the domain would reject the machine under the new name.
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
