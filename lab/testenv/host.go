package testenv

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// HostOptions describe one host. The zero value of a field means its default. Defaults depend on the host's number,
// which starts at 1.
type HostOptions struct {
	// Name is the computer name. Default: instance-<number>.
	Name string
	// Address is the IPv4 address. Default: Address(number).
	Address string
	// MoreAddresses are further IPv4 addresses that the host reports but that no server listens on. Windows changes
	// the order of all addresses at each boot.
	MoreAddresses []string
	// DNSName is the name of the host in windows-instances; "" lists Address. Hosts created by number have a DNS name
	// if their number is even.
	DNSName string
	// Username is the administrator account for logins. Default: Administrator.
	Username string
	// System is the Windows version. Default: Windows Server 2022.
	System *host.SystemInfo
	// Services and Features are the initial services and features; see fake.Options.
	Services []host.ServiceConfig
	Features map[string]host.FeatureState
	// Environment has machine-wide variables; see fake.Options.
	Environment map[string]string
	// SSHStart, StaticAddress, HNSStoppedAtBoot and DomainMember create a host that is harder to configure; see
	// fake.Options.
	SSHStart                                      host.StartType
	StaticAddress, HNSStoppedAtBoot, DomainMember bool
	// GroupPolicy is the firewall policy of the host's domain.
	GroupPolicy fake.GroupPolicy
	// Domain is the primary DNS suffix. A host with a suffix is a member of that domain.
	Domain string
	// CloudName is the machine name in the metadata service of AWS or GCP. Default: the private DNS name of the
	// address on AWS, the computer name on GCP. With NoMetadata, the metadata service does not respond.
	CloudName  string
	NoMetadata bool
	// ShutdownDelay is the time during which the host still works after accepting a reboot. RebootDuration is the
	// following downtime, and BootDelay the start time of the SSH server. RebootDuration defaults to
	// DefaultRebootDuration; NoTime means no downtime.
	ShutdownDelay, RebootDuration, BootDelay time.Duration
	// FeatureDuration is the time for switching an optional feature of Windows.
	FeatureDuration time.Duration
	// ClockOffset is the lead of the host's clock over the true time, negative if the clock is behind.
	ClockOffset time.Duration
	// Link is the line of SSH connections to this host. Default: Options.Link.
	Link *winhost.Link
}

// DefaultRebootDuration is the downtime of simulated hosts during a reboot, by the clock of the lab. It exceeds the
// interval of the operator's checks of a restarting host, so that intermediate states are observed.
const DefaultRebootDuration = 3 * time.Second

// NoTime is a duration of zero for fields with another default.
const NoTime time.Duration = -1

// Hosts returns options for n hosts, alternating between address and DNS name, with the users of the guide's example.
func Hosts(n int) []HostOptions {
	hosts := make([]HostOptions, n)
	for i := range hosts {
		if i%2 == 1 {
			hosts[i] = HostOptions{DNSName: DNSName(i + 1), Username: "core"}
		}
	}
	return hosts
}

// InstantHosts returns the hosts of Hosts without reboot time, for measurements of the operator's own time.
func InstantHosts(n int) []HostOptions {
	hosts := Hosts(n)
	for i := range hosts {
		hosts[i].RebootDuration = NoTime
	}
	return hosts
}

func (o HostOptions) withDefaults(number int) HostOptions {
	o.Name = cmp.Or(o.Name, fmt.Sprintf("instance-%d", number))
	o.Address = cmp.Or(o.Address, Address(number))
	o.Username = cmp.Or(o.Username, "Administrator")
	o.RebootDuration = cmp.Or(o.RebootDuration, DefaultRebootDuration)
	if o.System == nil {
		system := fake.WindowsServer2022()
		o.System = &system
	}
	if o.Domain != "" {
		system := *o.System
		system.Domain = o.Domain
		o.System, o.DomainMember = &system, true
	}
	return o
}

// Host is a simulated Windows host with its SSH server.
type Host struct {
	*winhost.Host
	// Options are the options of the host, with defaults.
	Options HostOptions

	platform string
	address  atomic.Value // string; the current address
	// Only virtual machines of the cloud have these.
	vm    *vm
	guest *guest
}

// Entry returns the host's key and value in the ConfigMap windows-instances.
func (h *Host) Entry() (address, value string) {
	return cmp.Or(h.Options.DNSName, h.Options.Address), "username=" + h.Options.Username
}

// NodeName returns the name of the host's Node, unless the Node had another name before.
func (h *Host) NodeName() string {
	if h.platform == platformVSphere {
		return strings.ToLower(h.guestName())
	}
	return strings.ToLower(cmp.Or(h.Options.CloudName, h.Options.Name))
}

// guestName returns the current full DNS name of the host. The operator renames only virtual machines of Machines.
func (h *Host) guestName() string {
	name := h.Options.Name
	if h.vm != nil {
		name = h.Machine().Name()
	}
	if h.Options.Domain == "" {
		return name
	}
	return name + "." + h.Options.Domain
}

// guestNames returns the full DNS names of all Windows hosts.
func (r *Environment) guestNames() []string {
	hosts := r.Hosts()
	r.cloud.mu.Lock()
	for _, v := range r.cloud.vms {
		if v.host != nil && !v.deleted {
			hosts = append(hosts, v.host)
		}
	}
	r.cloud.mu.Unlock()
	var names []string
	for _, h := range hosts {
		names = append(names, h.guestName())
	}
	return names
}

// kubeletPKI is the directory of the kubelet's certificate store, which requires real files.
const kubeletPKI = `C:\var\lib\kubelet\pki`

// AddHost creates and boots a host. The name and address must be new.
func (r *Environment) AddHost(ctx context.Context, options HostOptions) (*Host, error) {
	h, err := r.registerHost(options)
	if err != nil {
		return nil, err
	}
	return h, r.bootHost(ctx, h)
}

// registerHost assigns a number to a host.
func (r *Environment) registerHost(options HostOptions) (*Host, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	options = options.withDefaults(len(r.hosts) + 1)
	options.CloudName = cmp.Or(options.CloudName, cloudName(r.platform, options.Name, options.Address))
	for _, other := range r.hosts {
		if other.Options.Name == options.Name || other.Options.Address == options.Address {
			return nil, fmt.Errorf("add host %s at %s: there is host %s at %s", options.Name, options.Address,
				other.Options.Name, other.Options.Address)
		}
	}
	h := &Host{Options: options, platform: r.platform}
	h.address.Store(options.Address)
	r.hosts = append(r.hosts, h)
	return h, nil
}

// currentAddress returns the host's current address.
func (h *Host) currentAddress() string {
	address, _ := h.address.Load().(string) // nothing else is stored
	return address
}

func (r *Environment) bootHost(ctx context.Context, h *Host) error {
	options := h.Options
	created := fake.Options{
		Name: options.Name, Addresses: append([]string{options.Address}, options.MoreAddresses...), System: *options.System, Clock: r.options.Clock,
		ClockOffset: options.ClockOffset, Programs: r.programs, Contents: r.contents, ShutdownDelay: options.ShutdownDelay,
		RebootDuration: options.RebootDuration, FeatureDuration: options.FeatureDuration,
		SSHStart: options.SSHStart, StaticAddress: options.StaticAddress, HNSStoppedAtBoot: options.HNSStoppedAtBoot,
		DomainMember: options.DomainMember, GroupPolicy: options.GroupPolicy,
		Services: options.Services, Features: options.Features, Environment: options.Environment, Network: hostNetwork{r},
		Listen: func(_ context.Context, port int) (net.Listener, error) {
			return r.network.Listen(h.currentAddress(), port)
		},
	}
	if options.CloudName != "" {
		created.Routes = []string{metadataRoute} // The agents in the clouds' images create it.
		if !options.NoMetadata {
			created.Metadata = map[string]string{r.platform: options.CloudName}
		}
	}
	machine := fake.New(created)
	files := r.filesOf(h)
	if err := os.MkdirAll(files, 0o700); err != nil {
		return fmt.Errorf("make the directory of host %s: %w", options.Name, err)
	}
	machine.MountDirectory(kubeletPKI, filepath.Join(files, "pki"))
	server := winhost.Options{
		Machine: machine, Clock: r.options.Clock, Rand: r.options.Rand, BootDelay: options.BootDelay,
		Link: cmp.Or(options.Link, r.options.Link),
		Listen: func(context.Context) (net.Listener, error) {
			return r.network.Listen(h.currentAddress(), sshPort)
		},
	}
	if h.guest == nil {
		server.AuthorizedKeys = map[string][]ssh.PublicKey{options.Username: {r.publicKey()}}
	} else {
		h.guest.configureImage(&server)
		machine.OnBoot(h.guest.startBootWork)
		machine.OnShutdown(h.guest.stopBootWork)
	}
	h.Host = winhost.New(server)
	if options.DNSName != "" {
		r.network.SetName(options.DNSName, options.Address)
	}
	if err := h.Start(r.running); err != nil {
		return fmt.Errorf("start host %s: %w", options.Name, err)
	}
	if err := machine.Boot(ctx); err != nil {
		return fmt.Errorf("boot host %s: %w", options.Name, err)
	}
	return nil
}

const sshPort = 22

// metadataRoute is the route to the metadata service of clouds.
const metadataRoute = "169.254.169.254/32"

// MoveHost restarts a host with another address, as after a new DHCP lease. The DNS name, if any, is updated.
func (r *Environment) MoveHost(ctx context.Context, h *Host, address string) error {
	h.Machine().PowerOff()
	h.Machine().SetAddresses(address)
	h.address.Store(address)
	h.Options.Address = address
	if h.Options.DNSName != "" {
		r.network.SetName(h.Options.DNSName, address)
	}
	if err := h.Machine().Boot(ctx); err != nil {
		return fmt.Errorf("boot host %s at %s: %w", h.Options.Name, address, err)
	}
	return nil
}

// ReinstallHost reinstalls Windows on a host without changing its address, like an administrator: with another host
// key and machine ID, and an empty drive. The SSH server knows the current key. No other goroutine may use the host
// meanwhile.
func (r *Environment) ReinstallHost(ctx context.Context, h *Host) error {
	h.close()
	if err := removeAll(r.filesOf(h)); err != nil {
		return fmt.Errorf("reinstall host %s: %w", h.Options.Name, err)
	}
	id := make([]byte, 16)
	if _, err := io.ReadFull(r.options.Rand, id); err != nil {
		return fmt.Errorf("reinstall host %s: %w", h.Options.Name, err)
	}
	system := *h.Options.System
	system.MachineID = fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	h.Options.System = &system
	return r.bootHost(ctx, h)
}

// Host returns the BYOH host that was created with the computer name. It panics if there is none, because the test
// itself chooses the name.
func (r *Environment) Host(name string) *Host {
	for _, h := range r.Hosts() {
		if h.Options.Name == name {
			return h
		}
	}
	panic(fmt.Sprintf("the environment has no host %q", name))
}

// Hosts returns all BYOH hosts, in the order of their creation.
func (r *Environment) Hosts() []*Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Host(nil), r.hosts...)
}

// hostsNamed returns hosts by computer name; all hosts if no name is given.
func (r *Environment) hostsNamed(names []string) []*Host {
	if len(names) == 0 {
		return r.Hosts()
	}
	var hosts []*Host
	for _, name := range names {
		hosts = append(hosts, r.Host(name))
	}
	return hosts
}

func (h *Host) close() {
	if h.Host != nil {
		h.Stop()
		h.Machine().Close()
	}
}
