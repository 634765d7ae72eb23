package rig

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

// HostOptions describe one host. The zero value of a field means its default; defaults differ with the host's number,
// from 1.
type HostOptions struct {
	// Name is the computer name. Default: instance-<number>.
	Name string
	// Address is the IPv4 address. Default: Address(number).
	Address string
	// MoreAddresses are further IPv4 addresses that the host reports. Windows changes the order of all at each boot. Nothing
	// listens on these.
	MoreAddresses []string
	// DNSName is what windows-instances lists the host by; "" with Address listed. Hosts that are made by number have one
	// when their number is even.
	DNSName string
	// Username is the administrator to log in as. Default: Administrator.
	Username string
	// System is the Windows version. Default: Windows Server 2022.
	System *host.SystemInfo
	// Services and Features are what was there before; see fake.Options.
	Services []host.ServiceConfig
	Features map[string]host.FeatureState
	// Environment has machine-wide variables; see fake.Options.
	Environment map[string]string
	// SSHStart, StaticAddress, HNSSleeps and DomainMember make a host that is harder to make a node of; see fake.Options.
	SSHStart                               host.StartType
	StaticAddress, HNSSleeps, DomainMember bool
	// GroupPolicy is the firewall policy of its domain.
	GroupPolicy fake.GroupPolicy
	// Domain is the primary DNS suffix. A host that has one is a member of that domain.
	Domain string
	// CloudName is the name by which the metadata service of AWS or GCP knows the machine. Default: the private DNS name
	// of the address on AWS, the computer name on GCP. NoMetadata is a machine that gets no answer from it.
	CloudName  string
	NoMetadata bool
	// ShutdownDelay is how long the host works on after it has accepted a reboot, RebootDuration how long it is down then,
	// and BootDelay the SSH server's start after that. RebootDuration is DefaultRebootDuration by default, and NoTime for a
	// host that costs nothing.
	ShutdownDelay, RebootDuration, BootDelay time.Duration
	// FeatureDuration is how long it takes to switch an optional feature of Windows.
	FeatureDuration time.Duration
	// ClockOffset is how far the host's clock is ahead of the true time, negative when it is behind.
	ClockOffset time.Duration
	// Link is the line that SSH connections to this host go over. Default: Options.Link.
	Link *winhost.Link
}

// DefaultRebootDuration is how long simulated hosts are down for a reboot, by the clock of the lab. It is longer than the
// interval at which the operator checks a host that restarts: its states in between are seen.
const DefaultRebootDuration = 3 * time.Second

// NoTime is the duration of what takes no time, where zero means a default.
const NoTime time.Duration = -1

// Hosts are options for n hosts, by address and by DNS name in turn, with the users of the guide's example.
func Hosts(n int) []HostOptions {
	hosts := make([]HostOptions, n)
	for i := range hosts {
		if i%2 == 1 {
			hosts[i] = HostOptions{DNSName: DNSName(i + 1), Username: "core"}
		}
	}
	return hosts
}

// InstantHosts are the hosts of Hosts, with reboots that take no time: for measurements of the operator's own time.
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
	// Options are those in force, with defaults.
	Options HostOptions

	platform string
	address  atomic.Value // string; where the host is now
	// A virtual machine of the cloud has these.
	vm    *vm
	guest *guest
}

// Entry returns the host's key and value in the ConfigMap windows-instances.
func (h *Host) Entry() (address, value string) {
	return cmp.Or(h.Options.DNSName, h.Options.Address), "username=" + h.Options.Username
}

// NodeName returns the name of the host's Node, unless its Node had another name before.
func (h *Host) NodeName() string {
	if h.platform == platformVSphere {
		return strings.ToLower(h.guestName())
	}
	return strings.ToLower(cmp.Or(h.Options.CloudName, h.Options.Name))
}

// guestName returns the full DNS name that the host has. The operator renames virtual machines of Machines only.
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
func (r *Rig) guestNames() []string {
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

// kubeletPKI is where the kubelet's certificate store is: it needs real files.
const kubeletPKI = `C:\var\lib\kubelet\pki`

// AddHost makes a host and boots it. Its name and address must be new.
func (r *Rig) AddHost(ctx context.Context, options HostOptions) (*Host, error) {
	h, err := r.enter(options)
	if err != nil {
		return nil, err
	}
	return h, r.bootHost(ctx, h)
}

// enter gives a host its number.
func (r *Rig) enter(options HostOptions) (*Host, error) {
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

// at returns the host's present address.
func (h *Host) at() string {
	address, _ := h.address.Load().(string) // nothing else is stored
	return address
}

func (r *Rig) bootHost(ctx context.Context, h *Host) error {
	options := h.Options
	created := fake.Options{
		Name: options.Name, Addresses: append([]string{options.Address}, options.MoreAddresses...), System: *options.System, Clock: r.options.Clock,
		ClockOffset: options.ClockOffset, Programs: r.programs, Contents: r.contents, ShutdownDelay: options.ShutdownDelay,
		RebootDuration: options.RebootDuration, FeatureDuration: options.FeatureDuration,
		SSHStart: options.SSHStart, StaticAddress: options.StaticAddress, HNSSleeps: options.HNSSleeps,
		DomainMember: options.DomainMember, GroupPolicy: options.GroupPolicy,
		Services: options.Services, Features: options.Features, Environment: options.Environment, Network: hostNetwork{r},
		Listen: func(_ context.Context, port int) (net.Listener, error) {
			return r.network.Listen(h.at(), port)
		},
	}
	if options.CloudName != "" {
		created.Routes = []string{metadataRoute} // The agents of the clouds' images make it.
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
			return r.network.Listen(h.at(), sshPort)
		},
	}
	if h.guest == nil {
		server.AuthorizedKeys = map[string][]ssh.PublicKey{options.Username: {r.publicKey()}}
	} else {
		h.guest.image(&server)
		machine.OnBoot(h.guest.booted)
		machine.OnShutdown(h.guest.off)
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

// metadataRoute is the way to the metadata service of clouds.
const metadataRoute = "169.254.169.254/32"

// MoveHost restarts a host with another address, as a new DHCP lease may. Its DNS name, if it has one, follows.
func (r *Rig) MoveHost(ctx context.Context, h *Host, address string) error {
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

// ReinstallHost gives a host a new Windows where it is, as somebody does who installs it anew: with another host key and
// machine ID, and nothing on its drive. Its SSH server knows the present key. Nobody else may use the host meanwhile.
func (r *Rig) ReinstallHost(ctx context.Context, h *Host) error {
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

// Host returns the bring-your-own host with the computer name it was made with. It panics when there is none: the name
// is the test's own.
func (r *Rig) Host(name string) *Host {
	for _, h := range r.Hosts() {
		if h.Options.Name == name {
			return h
		}
	}
	panic(fmt.Sprintf("the rig has no host %q", name))
}

// Hosts returns all bring-your-own hosts, in the order they were added.
func (r *Rig) Hosts() []*Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Host(nil), r.hosts...)
}

// hostsNamed returns hosts by computer name; all when none is named.
func (r *Rig) hostsNamed(names []string) []*Host {
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
