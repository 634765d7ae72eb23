// Package fake implements a Windows machine in memory. It implements the interfaces of package host with the
// semantics of Windows: services with dependencies and recovery actions, changes that take effect after a reboot, and
// running executables that cannot be replaced. Programs are Go functions that represent executables. Hundreds of
// machines fit into one process.
package fake

import (
	"context"
	"net"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Options describe a machine before its first boot. The zero value of a field means its default.
type Options struct {
	// Name is the computer name. Default: "WIN-" and a part of the machine ID.
	Name string
	// Addresses are the machine's IPv4 addresses, starting with that of the default route.
	Addresses []string
	// System is the Windows release (WindowsServer2022, WindowsServer2019). Names, boot and disk facts are filled in.
	System host.SystemInfo
	// Clock is the machine's clock. Default: the real one.
	Clock clock.WithTicker
	// ClockOffset is the offset of the machine's clock from Clock; a positive offset is ahead.
	ClockOffset time.Duration
	// ProgramClock is the clock for the start times of processes. Default: Clock. Programs may need another clock
	// than Windows if the clock of Windows is accelerated.
	ProgramClock clock.PassiveClock
	// Programs returns the program for the content of an executable. Default: no executable is known.
	Programs ProgramTable
	// Contents stores the file contents. Machines that share a store keep equal files once. Default: a separate
	// store.
	Contents *ContentStore
	// Listen opens a port on the machine's external addresses, for programs with external clients. Nil:
	// Process.Listen fails.
	Listen func(ctx context.Context, port int) (net.Listener, error)
	// Network resolves names and connects outside of the machine. Nil: the machine is isolated.
	Network Network
	// Metadata are the host names returned by the metadata service, by platform ("AWS"). Default: there is none.
	Metadata map[string]string
	// Routes are the destinations to which the setup of the image adds a route, at the first boot only
	// (169.254.169.254/32).
	Routes []string
	// DiskBytes is the size of C:. Default: 127 GiB.
	DiskBytes int64
	// ShutdownDelay is the time between an accepted reboot and the end of all processes. The machine keeps running
	// during this time. Zero: no delay.
	ShutdownDelay time.Duration
	// RebootDuration is the time between the end of all processes and the next boot. Zero: no delay.
	RebootDuration time.Duration
	// FeatureDuration is the time to switch an optional feature. Zero: no delay.
	FeatureDuration time.Duration
	// Services are additional services installed before the first boot, unrelated to the product. Their executables
	// must be known to Programs, exist on the drive before Boot, or be `C:\Windows\System32\svchost.exe`, which
	// idles.
	Services []host.ServiceConfig
	// SSHStart is the start type of the SSH server's service. During the first boot an administrator starts the
	// service manually, regardless of the type. Default: Automatic.
	SSHStart host.StartType
	// Environment are additional machine-wide variables, set by an administrator before the first boot.
	Environment map[string]string
	// StaticAddress means that the addresses were assigned manually instead of by DHCP.
	StaticAddress bool
	// HNSStoppedAtBoot means that the Host Networking Service is stopped after each boot and does not answer until its
	// service is started.
	HNSStoppedAtBoot bool
	// HNSSettingsReadAtStart means that the Host Networking Service reads DeviceLessNicDisabled when its service starts
	// instead of when it creates a switch.
	HNSSettingsReadAtStart bool
	// ManagementIP is the address of the adapter that HNS binds for overlay networks. Default: HNS does not report
	// the address.
	ManagementIP string
	// NoHostRoute means that HNS lists the policies of overlay networks without HostRoute.
	NoHostRoute bool
	// DomainMember makes the machine a member of a domain, which identifies the machine by its name.
	DomainMember bool
	// GroupPolicy is the firewall policy of the domain.
	GroupPolicy GroupPolicy
	// Features override the states of optional features before the first boot.
	Features map[string]host.FeatureState
}

// WindowsServer2022 describes Windows Server 2022 Datacenter, build 20348.681.
func WindowsServer2022() host.SystemInfo {
	return host.SystemInfo{
		Product: "Windows Server 2022 Datacenter", Edition: "ServerDatacenter", Version: "10.0.20348", Revision: 681,
		Architecture: "amd64", MemoryBytes: 16 << 30,
	}
}

// WindowsServer2025 describes Windows Server 2025 Datacenter, build 26100.6899.
func WindowsServer2025() host.SystemInfo {
	return host.SystemInfo{
		Product: "Windows Server 2025 Datacenter", Edition: "ServerDatacenter", Version: "10.0.26100", Revision: 6899,
		Architecture: "amd64", MemoryBytes: 16 << 30,
	}
}

// WindowsServer2019 describes Windows Server 2019 Datacenter, build 17763.4737.
func WindowsServer2019() host.SystemInfo {
	return host.SystemInfo{
		Product: "Windows Server 2019 Datacenter", Edition: "ServerDatacenter", Version: "10.0.17763", Revision: 4737,
		Architecture: "amd64", MemoryBytes: 16 << 30,
	}
}
