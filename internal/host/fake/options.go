// Package fake is a Windows machine in memory. It keeps Windows' semantics behind the interfaces of package host:
// services with dependencies and recovery actions, changes that wait for a reboot, files that cannot be replaced while
// they run. Programs are Go functions that stand for executables. Hundreds of machines fit into one process.
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
	// Addresses are the machine's IPv4 addresses, the default route's first.
	Addresses []string
	// System is what Windows says of itself (WindowsServer2022, WindowsServer2019); names, boot and disk facts are filled
	// in.
	System host.SystemInfo
	// Clock is the machine's clock. Default: the real one.
	Clock clock.WithTicker
	// ClockOffset is how far the machine's clock is ahead of Clock, negative when it is behind.
	ClockOffset time.Duration
	// ProgramClock says when a process began. Default: Clock. Programs may follow another one than Windows, where that is
	// made to run faster.
	ProgramClock clock.PassiveClock
	// Programs finds what an executable does by its content. Default: no executable is known.
	Programs ProgramTable
	// Contents holds the file contents; machines that share it keep equal files once. Default: one of its own.
	Contents *ContentStore
	// Listen opens a port on the machine's outside addresses, for programs that serve others. Nil: Process.Listen fails.
	Listen func(ctx context.Context, port int) (net.Listener, error)
	// Network is what is outside of the machine, for its names and connections. Nil: the machine is alone.
	Network Network
	// Metadata are the names by which a platform's metadata service knows the machine, by platform ("AWS"). Default: there
	// is none.
	Metadata map[string]string
	// Routes are the destinations to which the image's own set-up makes a route, at the first boot only
	// (169.254.169.254/32).
	Routes []string
	// DiskBytes is the size of C:. Default: 127 GiB.
	DiskBytes int64
	// ShutdownDelay is the time between an accepted reboot and the end of all processes, in which the machine works on.
	// Zero: no time passes.
	ShutdownDelay time.Duration
	// RebootDuration is the time between the end of all processes and the next boot. Zero: no time passes.
	RebootDuration time.Duration
	// FeatureDuration is how long it takes to switch an optional feature. Zero: no time passes.
	FeatureDuration time.Duration
	// Services are foreign services that are installed before the first boot. Their executable must be known to Programs,
	// lie on the drive before Boot, or be `C:\Windows\System32\svchost.exe`, which idles.
	Services []host.ServiceConfig
	// SSHStart is the start type of the SSH server's service. Before the first boot is over somebody has started it by
	// hand, whatever the type. Default: Automatic.
	SSHStart host.StartType
	// Environment has further machine-wide variables, which an administrator set before the first boot.
	Environment map[string]string
	// StaticAddress means that the addresses were given by hand, and not by DHCP.
	StaticAddress bool
	// HNSSleeps lets the Host Networking Service be stopped after each boot, and not answer before its service is started.
	HNSSleeps bool
	// HNSReadsStateAtStart lets the Host Networking Service read DeviceLessNicDisabled when its service starts, and not when it
	// makes a switch.
	HNSReadsStateAtStart bool
	// ManagementIP is the address of the adapter that HNS takes for overlay networks. Default: HNS does not report it.
	ManagementIP string
	// NoHostRoute lets HNS list the policies of overlay networks without HostRoute.
	NoHostRoute bool
	// DomainMember makes the machine a member of a domain, which knows it by its name.
	DomainMember bool
	// GroupPolicy is the firewall policy of its domain.
	GroupPolicy GroupPolicy
	// Features override how the optional features stand before the first boot.
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
