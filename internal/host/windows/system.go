//go:build windows

// The facts of Windows come from several sources. RtlGetVersion is the only call that returns the unmodified
// version. Only the registry contains update revision, product and edition. The other facts come from
// GlobalMemoryStatusEx, GetDiskFreeSpaceEx and NtQuerySystemInformation (boot time).

package windows

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/internal/host"
)

// system implements host.System.
type system struct{}

// Info returns the current facts of the machine.
func (system) Info(ctx context.Context) (info host.SystemInfo, err error) {
	err = runDetached(ctx, func() error {
		info, err = readSystem(ctx)
		return err
	})
	if err != nil {
		return host.SystemInfo{}, fmt.Errorf("read the version of Windows: %w", err)
	}
	return info, nil
}

func readSystem(ctx context.Context) (host.SystemInfo, error) {
	var info host.SystemInfo
	for _, read := range []func(*host.SystemInfo) error{
		readVersion, readArchitecture, readNames, readMachineID, readBoot, readMemory, readFreeDisk,
		readAddresses, readRebootPending, readFirewallPolicy,
	} {
		if ctx.Err() != nil {
			return info, context.Cause(ctx)
		}
		if err := read(&info); err != nil {
			return info, err
		}
	}
	return info, nil
}

// workstation is the product type of a client Windows (VER_NT_WORKSTATION).
const workstation = 1

// currentVersionKey contains the facts that Windows shows under "About".
const currentVersionKey = `SOFTWARE\Microsoft\Windows NT\CurrentVersion`

func readVersion(info *host.SystemInfo) error {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, currentVersionKey, registry.QUERY_VALUE)
	if err != nil {
		return fmt.Errorf("open the registry key %s: %w", currentVersionKey, err)
	}
	defer func() { _ = key.Close() }()
	registered, _, err := key.GetStringValue("ProductName")
	if err != nil {
		return fmt.Errorf("read the product's name: %w", err)
	}
	if info.Edition, _, err = key.GetStringValue("EditionID"); err != nil && !errors.Is(err, registry.ErrNotExist) {
		return fmt.Errorf("read the edition: %w", err)
	}
	revision, _, err := key.GetIntegerValue("UBR")
	if err != nil && !errors.Is(err, registry.ErrNotExist) {
		return fmt.Errorf("read the update revision: %w", err)
	}
	version := windows.RtlGetVersion()
	info.Revision = int(revision)
	info.Version = fmt.Sprintf("%d.%d.%d", version.MajorVersion, version.MinorVersion, version.BuildNumber)
	info.Product = productName(registered, info.Edition, version.BuildNumber, version.ProductType != workstation)
	return nil
}

// readArchitecture reads the architecture of the machine, not of this program.
func readArchitecture(info *host.SystemInfo) error {
	var process, native uint16
	if err := windows.IsWow64Process2(windows.CurrentProcess(), &process, &native); err != nil {
		return fmt.Errorf("query the processor architecture: %w", err)
	}
	info.Architecture = architectureName(native)
	return nil
}

// readMachineID reads the GUID that Windows Setup creates.
func readMachineID(info *host.SystemInfo) error {
	const path = `SOFTWARE\Microsoft\Cryptography`
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return fmt.Errorf("open the registry key %s: %w", path, err)
	}
	defer func() { _ = key.Close() }()
	if info.MachineID, _, err = key.GetStringValue("MachineGuid"); err != nil {
		return fmt.Errorf("read the machine's GUID: %w", err)
	}
	return nil
}

// timeOfDay is SYSTEM_TIMEOFDAY_INFORMATION. Times are in units of 100 ns since 1601.
type timeOfDay struct {
	bootTime      int64
	currentTime   int64
	timeZoneBias  int64
	timeZoneID    uint32
	_             uint32
	bootTimeBias  uint64
	sleepTimeBias uint64
}

// readBoot reads the boot time. A change of the clock shifts the boot time, and the bias accumulates these shifts.
// Without the bias, the boot time is constant until the next boot and therefore identifies the boot.
func readBoot(info *host.SystemInfo) error {
	var answer timeOfDay
	err := windows.NtQuerySystemInformation(windows.SystemTimeOfDayInformation, unsafe.Pointer(&answer),
		uint32(unsafe.Sizeof(answer)), nil)
	if err != nil {
		return fmt.Errorf("query the boot time: %w", err)
	}
	info.BootID = bootID(answer.bootTime, answer.bootTimeBias)
	filetime := windows.Filetime{LowDateTime: uint32(answer.bootTime), HighDateTime: uint32(answer.bootTime >> 32)}
	info.BootTime = time.Unix(0, filetime.Nanoseconds()).UTC()
	return nil
}

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	length            uint32
	memoryLoad        uint32
	totalPhysical     uint64
	availablePhysical uint64
	totalPageFile     uint64
	availablePageFile uint64
	totalVirtual      uint64
	availableVirtual  uint64
	availableExtended uint64
}

func readMemory(info *host.SystemInfo) error {
	status := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	done, _, err := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx").Call(uintptr(unsafe.Pointer(&status)))
	if done == 0 {
		return fmt.Errorf("query the memory size: %w", err)
	}
	info.MemoryBytes = int64(status.totalPhysical)
	return nil
}

func readFreeDisk(info *host.SystemInfo) error {
	directory, err := windows.GetSystemWindowsDirectory()
	if err != nil {
		return fmt.Errorf("query the Windows directory: %w", err)
	}
	path, err := windows.UTF16PtrFromString(directory)
	if err != nil {
		return fmt.Errorf("directory %q of Windows: %w", directory, err)
	}
	var available uint64
	if err := windows.GetDiskFreeSpaceEx(path, &available, nil, nil); err != nil {
		return fmt.Errorf("query the free space of %s: %w", directory, err)
	}
	info.FreeDiskBytes = int64(available)
	return nil
}

func readAddresses(info *host.SystemInfo) (err error) {
	info.Addresses, info.StaticAddress, err = listAddresses()
	return err
}

// rebootKeys exist while a part of Windows waits for a restart: component servicing (features, updates) and Windows
// Update. The value PendingFileRenameOperations does not indicate a pending restart, because programs that update
// themselves leave entries there permanently.
var rebootKeys = []string{
	`SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending`,
	`SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update\RebootRequired`,
}

// readRebootPending must run after readNames, because a pending host name also requires a restart.
func readRebootPending(info *host.SystemInfo) error {
	info.RebootPending = info.PendingHostName != ""
	for _, path := range rebootKeys {
		key, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE|registry.WOW64_64KEY)
		if errors.Is(err, registry.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open the registry key %s: %w", path, err)
		}
		_ = key.Close()
		info.RebootPending = true
	}
	return nil
}
