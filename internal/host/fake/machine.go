package fake

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Machine is a simulated Windows machine. New returns a powered-off machine; Boot starts it. All methods are safe for
// concurrent use.
type Machine struct {
	options Options
	clock   clock.WithTicker
	// clockOffset is a time.Duration.
	clockOffset atomic.Int64
	journal     *Journal
	changes     broadcast
	programs    sync.WaitGroup // goroutines of programs and of the machine itself

	mu          sync.Mutex
	afterUnlock []func() // external code to run after the lock is released

	power      powerState
	boots      int // counts boots and power cuts, to detect leftovers of an earlier boot
	bootID     string
	bootTime   time.Time
	up         context.Context // done when this boot ends
	down       context.CancelFunc
	lingers    bool // a reboot was accepted and has not started
	onBoot     []func()
	onShutdown []func()

	name, pendingName string
	// revision is the revision of the Windows build from the next boot on.
	revision        int
	drive           *drive
	services        map[string]*service
	features        map[string]*feature
	environment     variables
	bootEnvironment variables // as services see it
	firewall        map[string]host.FirewallRule
	outboundRules   map[string]string // names by key
	registry        registry
	cutOff          bool // the machine has lost its address
	hnsDeviceless   bool // registry value for static addresses at the last start of the Host Networking Service
	networks        []host.HNSNetwork
	endpoints       []host.HNSEndpoint
	attachments     int // number of endpoint attachments, each with its own adapter
	events          []host.LoggedEvent
	eventsCleared   int               // number of times
	eventSources    map[string]string // names by key
	defender        defender
	roots           rootStore
	routes          routeTable

	processes map[int]*Process
	lastPID   int
	reusedPID int // for the next process; 0 means a new ID
	console   *Process
	local     map[int]*localServer
	runtimes  map[string]*localRuntime
	sandboxes map[string]*sandbox // by ID
	faults    faults
	silent    map[string]chan struct{} // by address or name; closed when answers resume
}

// New returns a powered-off machine in its state after setup.
func New(options Options) *Machine {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.ProgramClock == nil {
		options.ProgramClock = options.Clock
	}
	if options.Contents == nil {
		options.Contents = NewContentStore()
	}
	if options.DiskBytes == 0 {
		options.DiskBytes = 127 << 30
	}
	if options.System.Product == "" {
		options.System = WindowsServer2022()
	}
	if options.System.MachineID == "" {
		options.System.MachineID = newStableID("machine", options.Name, fmt.Sprint(options.Addresses))
	}
	if options.Name == "" {
		options.Name = "WIN-" + options.System.MachineID[:8]
	}
	m := &Machine{
		options: options, name: options.Name, revision: options.System.Revision,
		services: map[string]*service{}, features: newFeatures(options.System, options.Features),
		firewall: newFirewall(options.System), outboundRules: map[string]string{},
		processes: map[int]*Process{}, local: map[int]*localServer{}, runtimes: map[string]*localRuntime{},
		sandboxes:    map[string]*sandbox{},
		eventSources: newEventSources(),
		silent:       map[string]chan struct{}{}, roots: newRootStore(), registry: registry{},
	}
	m.SetClockOffset(options.ClockOffset)
	m.clock = m.Clock(options.Clock)
	m.drive = newDrive(options.Contents, m.clock, options.DiskBytes)
	m.journal = newJournal(options.Clock, &m.changes) // uses the lab's clock, which has the true time
	m.environment = newEnvironment()
	for name, value := range options.Environment {
		m.environment.setVariable(name, value)
	}
	m.bootEnvironment = m.environment.copyVariables()
	m.console = m.newConsole()
	m.installWindows()
	return m
}

// newStableID returns a stable identifier in the form of a GUID.
func newStableID(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// lock acquires the machine's lock. While it is held, no external code runs: no program, hook, writer or listener.
func (m *Machine) lock() { m.mu.Lock() }

// unlock releases the lock and runs the deferred functions.
func (m *Machine) unlock() {
	waiting := m.afterUnlock
	m.afterUnlock = nil
	m.mu.Unlock()
	for _, run := range waiting {
		run()
	}
}

// deferUntilUnlock defers external code until the lock is released. The code runs on the goroutine that releases the
// lock.
func (m *Machine) deferUntilUnlock(run func()) { m.afterUnlock = append(m.afterUnlock, run) }

// Name returns the current computer name.
func (m *Machine) Name() string {
	m.lock()
	defer m.unlock()
	return m.name
}

// Addresses returns the machine's IPv4 addresses.
func (m *Machine) Addresses() []string {
	m.lock()
	defer m.unlock()
	return slices.Clone(m.options.Addresses)
}

// SetAddresses replaces the machine's IPv4 addresses, starting with that of the default route, as DHCP does. The
// caller must move listeners from the old addresses.
func (m *Machine) SetAddresses(addresses ...string) {
	m.lock()
	defer m.unlock()
	m.options.Addresses = slices.Clone(addresses)
}

// reorderAddresses changes the order of the addresses at each boot after the first. Windows lists the adapters in
// detection order, and the first of two equal default routes varies.
func (m *Machine) reorderAddresses() {
	if addresses := m.options.Addresses; m.boots > 1 && len(addresses) > 1 {
		m.options.Addresses = append(slices.Clone(addresses[1:]), addresses[0])
	}
}

// Journal returns the journal of the machine.
func (m *Machine) Journal() *Journal { return m.journal }

// Host returns the machine from the view of an administrator at the console. The host belongs to no process and works
// in every boot. While the machine is off, all operations return ErrPoweredOff.
func (m *Machine) Host() host.Host { return m.console.Host }

// pollInterval is the interval between checks by WaitFor of a machine that does not change.
const pollInterval = 10 * time.Millisecond

// WaitFor waits until the condition holds. The condition is checked after each change of the machine, after each
// journal entry, and periodically, because it may depend on external state.
func (m *Machine) WaitFor(ctx context.Context, condition func(*Machine) bool) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	return m.waitUntil(ctx, ticker.C, func() bool { return condition(m) })
}

// waitUntil waits until the condition holds. The condition is checked after each change and each tick; ticks may be
// nil.
func (m *Machine) waitUntil(ctx context.Context, ticks <-chan time.Time, condition func() bool) error {
	for {
		change := m.changes.nextChange()
		if condition() {
			return nil
		}
		select {
		case <-change:
		case <-ticks:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", m.options.Name, context.Cause(ctx))
		}
	}
}

// system implements host.System for one process.
type system struct{ p *Process }

func (s system) Info(ctx context.Context) (info host.SystemInfo, err error) {
	err = s.p.runOperation(ctx, "System", "Info", "", func(m *Machine) error {
		info = m.options.System
		info.HostName, info.PendingHostName = m.name, m.pendingName
		info.BootID, info.BootTime = m.bootID, m.bootTime
		info.Addresses = slices.Clone(m.options.Addresses)
		info.StaticAddress = m.options.StaticAddress
		if m.cutOff {
			info.Addresses, info.StaticAddress = nil, false
		}
		info.FreeDiskBytes = m.drive.freeBytes()
		info.RebootPending = m.pendingName != "" || m.hasPendingFeature()
		info.SSHBlocked = m.sshBlocked()
		return nil
	})
	return info, err
}

func (s system) SetHostName(ctx context.Context, name string) error {
	return s.p.runOperation(ctx, "System", "SetHostName", name, func(m *Machine) error {
		if err := checkHostName(name); err != nil {
			return fmt.Errorf("set computer name %q: %w", name, err)
		}
		if m.options.DomainMember && !strings.EqualFold(name, m.name) {
			return fmt.Errorf("set computer name %q: %w", name, host.ErrDomainMember)
		}
		m.pendingName = name
		if name == m.name {
			m.pendingName = ""
		}
		s.p.recordEntry(KindHostName, "set "+name+" with the next reboot", 0)
		return nil
	})
}
