package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/lab/namespace"
	"github.com/windows-machine-config/wmco/lab/rig"
)

const (
	hostFake = "fake"
	// apiAddress is where the API server is inside of the lab's network.
	apiAddress = "10.9.255.1"
	apiPort    = "6443"
	domain     = "lab.example.com"
	maxHosts   = 1000
)

// programs are the executables that make builds.
type programs struct {
	operator, agent, controlPlane, kubectl string
}

type demoOptions struct {
	hosts    int
	host     string
	once     bool
	limit    time.Duration
	log      string
	programs programs
}

func newDemoCommand() *cobra.Command {
	o := demoOptions{}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Boot a control plane, install the operator, and make simulated Windows hosts nodes",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			return o.enter()
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.hosts, "hosts", 2, "how many hosts become nodes")
	flags.StringVar(&o.host, "host", hostFake, "kind of the hosts: "+hostFake+" is simulated in this process")
	flags.BoolVar(&o.once, "once", false, "leave when all hosts are Ready, or with status 1 when they are not in time")
	flags.DurationVar(&o.limit, "limit", 5*time.Minute, "how long --once waits for the hosts")
	flags.StringVar(&o.log, "operator-log", "", "file for the operator's log (default: demo-operator.log beside this program)")
	return command
}

// complete checks the flags and finds the other programs beside this one.
func (o *demoOptions) complete() error {
	if o.host != hostFake {
		return fmt.Errorf("--host=%s is not a kind of host; there is only %s", o.host, hostFake)
	}
	if o.hosts < 1 || o.hosts > maxHosts {
		return fmt.Errorf("--hosts=%d: it must be from 1 to %d", o.hosts, maxHosts)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	beside := func(name string) string { return filepath.Join(filepath.Dir(self), name) }
	o.programs = programs{operator: beside("wmco"), agent: beside("wicd.exe"), controlPlane: beside("lab-controlplane"), kubectl: beside("kubectl")}
	for _, path := range []string{o.programs.operator, o.programs.agent, o.programs.controlPlane} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w: run `make build`", err)
		}
	}
	if o.log == "" {
		o.log = beside("demo-operator.log")
	}
	o.log, err = filepath.Abs(o.log)
	return err
}

// enter runs the demo in namespaces of its own. The API server's port for users is opened before, so that it is one of this machine.
func (o *demoOptions) enter() error {
	config := o.namespace()
	if !namespace.Inside() {
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return fmt.Errorf("open a port for the API server: %w", err)
		}
		defer listener.Close()
		file, err := listener.File()
		if err != nil {
			return fmt.Errorf("open a port for the API server: %w", err)
		}
		defer file.Close()
		config.Files = []*os.File{file}
	}
	code, err := namespace.Main(config, o.inside)
	if err == nil && code != 0 {
		err = exitError(code)
	}
	return err
}

// namespace gives the lab's network its addresses and names.
func (o *demoOptions) namespace() namespace.Config {
	api := netip.MustParseAddr(apiAddress)
	config := namespace.Config{
		Addresses: []netip.Addr{api},
		Names:     map[string]netip.Addr{"api." + domain: api, "api-int." + domain: api},
		HostName:  "lab",
		Environ:   []string{"WMCO_LAB_CONTROLPLANE=" + o.programs.controlPlane},
	}
	// One more than become nodes, for the user to add.
	for n := 1; n <= o.hosts+1; n++ {
		address := netip.MustParseAddr(rig.Address(n))
		config.Addresses = append(config.Addresses, address)
		config.Names[rig.DNSName(n)] = address
	}
	return config
}

// inside is the demo in its namespaces.
func (o *demoOptions) inside(ctx context.Context, environment *namespace.Environment) (exitCode int) {
	d := &demo{demoOptions: o, dir: environment.Dir, output: newOutput(os.Stdout), board: newBoard()}
	err := d.listen(environment)
	if err == nil {
		err = d.run(ctx)
	}
	switch {
	case errors.Is(err, errNotReady):
		return 1 // it was said which, and why
	case ctx.Err() != nil:
		d.output.println("\nThe lab is gone.")
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
