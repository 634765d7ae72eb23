package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/lab/linuxns"
	"github.com/windows-machine-config/wmco/lab/monitoring"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
)

const (
	// apiAddress is the address of the API server inside the lab's network.
	apiAddress = "10.9.255.1"
	apiPort    = "6443"
	domain     = "lab.example.com"
	maxHosts   = 1000
	// maxMachines leaves addresses for Machines that users add.
	maxMachines = testenv.MachineAddresses / 2
)

// Default time limits for hosts: all hosts and the control plane share two processor cores.
const (
	fakeHostTimeout = 5 * time.Minute
	wineHostTimeout = 15 * time.Minute
)

// programs are the executables that `make` builds.
type programs struct {
	operator, agent, controlPlane, plugin string
	// monitoring is the directory of the monitoring programs.
	monitoring string
	// wineNode is built by the demo when needed; see standin.BuildNode.
	wineNode string
}

type demoOptions struct {
	hosts    int
	machines int
	host     string
	once     bool
	// monitoring is true if Prometheus also runs.
	monitoring bool
	timeout    time.Duration
	log        string
	programs   programs
	// wineHosts returns the reason why this machine cannot run Wine hosts; nil if it can.
	wineHosts func() error
}

func newDemoCommand() *cobra.Command {
	o := demoOptions{wineHosts: wine.Available}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Boot a control plane, install the operator, and make simulated Windows hosts, or Wine hosts, nodes",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := o.completeOptions(); err != nil {
				return err
			}
			return o.enterNamespaces()
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.hosts, "hosts", 2, "how many hosts become nodes")
	flags.IntVar(&o.machines, "machines", 3, "how many Machines the Windows MachineSet is scaled to; simulated hosts only")
	flags.StringVar(&o.host, "host", hostFake, "kind of the hosts: "+hostFake+" is simulated in this process, "+hostWine+
		" is Wine, which needs root")
	flags.BoolVar(&o.once, "once", false, "leave when all hosts are Ready, or with status 1 when they are not in time")
	flags.BoolVar(&o.monitoring, "monitoring", false, "run a real Prometheus beside, which scrapes the hosts, and a page with dashboards")
	flags.DurationVar(&o.timeout, "limit", 0,
		fmt.Sprintf("how long --once waits for the hosts (default: %v, for Wine hosts %v)", fakeHostTimeout, wineHostTimeout))
	flags.StringVar(&o.log, "operator-log", "",
		"file for the operator's log (default: demo-operator.log beside this program)")
	return command
}

// completeOptions validates the flags and finds the other programs beside this one.
func (o *demoOptions) completeOptions() error {
	switch o.host {
	case hostFake:
	case hostWine:
		if err := o.wineHosts(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("--host=%s is not a kind of host; there are %s and %s", o.host, hostFake, hostWine)
	}
	o.timeout = o.defaultTimeout()
	if o.hosts < 1 || o.hosts > maxHosts {
		return fmt.Errorf("--hosts=%d: it must be from 1 to %d", o.hosts, maxHosts)
	}
	if o.machines < 0 || o.machines > maxMachines {
		return fmt.Errorf("--machines=%d: it must be from 0 to %d", o.machines, maxMachines)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	beside := func(name string) string { return filepath.Join(filepath.Dir(self), name) }
	o.programs = programs{operator: beside("wmco"), agent: beside("wicd.exe"), controlPlane: beside("lab-controlplane"),
		plugin: beside("kubectl-windows"), monitoring: filepath.Dir(self), wineNode: beside("wine-node.exe")}
	needed := []string{o.programs.operator, o.programs.agent, o.programs.controlPlane}
	if o.monitoring {
		for _, name := range monitoring.Programs {
			needed = append(needed, beside(name))
		}
	}
	for _, path := range needed {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w: run `make build/%s`", err, filepath.Base(path))
		}
	}
	if o.log == "" {
		o.log = beside("demo-operator.log")
	}
	o.log, err = filepath.Abs(o.log)
	return err
}

// defaultTimeout returns the time limit of --once: the requested limit, otherwise the default.
func (o *demoOptions) defaultTimeout() time.Duration {
	if o.host == hostWine {
		return cmp.Or(o.timeout, wineHostTimeout)
	}
	return cmp.Or(o.timeout, fakeHostTimeout)
}

// enterNamespaces runs the demo in separate namespaces. Ports for users are opened before, so that they belong to the
// outer network. Downloads and builds also run before, because the namespace has no Internet access.
func (o *demoOptions) enterNamespaces() error {
	config, outside := o.namespaceConfig(), !linuxns.IsInside()
	if outside {
		if o.host == hostWine {
			kit, err := o.prepareWine()
			if err != nil {
				return err
			}
			defer runtime.KeepAlive(kit) // keeps the locks on the files in use
		}
		for range (&demo{demoOptions: o}).outerListeners() {
			file, err := openPort()
			if err != nil {
				return err
			}
			defer file.Close()
			config.Files = append(config.Files, file)
		}
	}
	code, err := linuxns.Main(config, o.runInside)
	if outside && code != 0 && o.host == hostWine {
		err = errors.Join(err, o.sweepWine())
	}
	if err == nil && code != 0 {
		err = linuxns.ExitError(code)
	}
	return err
}

func openPort() (*os.File, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("open a port for users of the lab: %w", err)
	}
	defer listener.Close() // the file stays open
	file, err := listener.File()
	if err != nil {
		return nil, fmt.Errorf("open a port for users of the lab: %w", err)
	}
	return file, nil
}

// namespaceConfig assigns addresses and names to the lab's network. Wine hosts create the links to their addresses
// themselves.
func (o *demoOptions) namespaceConfig() linuxns.Config {
	api := netip.MustParseAddr(apiAddress)
	config := linuxns.Config{
		Addresses: append([]netip.Addr{api}, podAddresses...),
		Names:     map[string]netip.Addr{"api." + domain: api, "api-int." + domain: api},
		HostName:  "lab",
		Environ:   []string{"WMCO_LAB_CONTROLPLANE=" + o.programs.controlPlane},
	}
	for _, h := range o.hostOptions() {
		address := netip.MustParseAddr(h.Address)
		if o.host != hostWine {
			config.Addresses = append(config.Addresses, address)
		}
		if h.DNSName != "" {
			config.Names[h.DNSName] = address
		}
	}
	o.reserveMachines(&config)
	if o.host == hostWine {
		config.GracePeriod = wineGracePeriod
	}
	return config
}

// runInside runs the demo inside its namespaces.
func (o *demoOptions) runInside(ctx context.Context, environment *linuxns.Environment) (exitCode int) {
	d := &demo{demoOptions: o, dir: environment.Dir, output: newOutput(os.Stdout), hostBoard: &hostBoard{}, closePod: func() error { return nil }}
	err := d.restoreListeners(environment)
	if err == nil {
		err = d.run(ctx)
	}
	switch {
	case errors.Is(err, errNotReady):
		return 1 // the hosts and reasons were printed
	case ctx.Err() != nil:
		d.output.printLine("\nThe lab is gone.")
		if o.once {
			return 1
		}
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	return 0
}
