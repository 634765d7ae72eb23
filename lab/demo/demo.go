package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/linuxns"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
	"github.com/windows-machine-config/wmco/lab/winetestenv"
)

// errNotReady means that not all hosts were Ready in time.
var errNotReady = errors.New("not all hosts are Ready")

// Duration of a simulated reboot: long enough to be visible.
const (
	rebootDuration = 2 * time.Second
	bootDelay      = time.Second
)

// demo is a running demo, inside the namespaces.
type demo struct {
	*demoOptions
	dir      string
	output   *output
	listener *net.TCPListener // for users of the API server
	ssh      *net.TCPListener // for logins to the first host; nil unless it is a Wine host
	env      *testenv.Environment
	kit      *winetestenv.Kit
	wine     []*wine.Host
	operator *testenv.OperatorProcess
	// operatorOptions are the start options of the operator.
	operatorOptions testenv.ProcessOptions
	// closePod ends the Pod of the operator.
	closePod func() error
	// controlPlane is closed when the control plane has ended.
	controlPlane <-chan struct{}
	// prometheus is the cluster's monitoring, if enabled.
	prometheus prometheus
	// machineSet is the name of the Windows MachineSet, "" without Machines.
	machineSet string
	hostBoard  *hostBoard
}

// outerListeners returns pointers to the listeners that are opened outside, in order.
func (d *demo) outerListeners() []**net.TCPListener {
	ports := []**net.TCPListener{&d.listener}
	if d.host == hostWine {
		ports = append(ports, &d.ssh)
	}
	if d.monitoring {
		ports = append(ports, &d.prometheus.listener)
	}
	return ports
}

// restoreListeners restores the listeners that were opened outside.
func (d *demo) restoreListeners(environment *linuxns.Environment) error {
	for i, listener := range d.outerListeners() {
		file := environment.Files[i]
		defer file.Close()
		inherited, err := net.FileListener(file)
		if err != nil {
			return fmt.Errorf("take a port of this machine: %w", err)
		}
		tcp, ok := inherited.(*net.TCPListener)
		if !ok {
			return fmt.Errorf("take a port of this machine: it is a %T", inherited)
		}
		*listener = tcp
	}
	return nil
}

// run performs the administrator's steps of the guide and prints the progress.
func (d *demo) run(ctx context.Context) (err error) {
	if err := d.bootLab(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if d.host == hostWine {
		if err := d.bootWine(ctx); err != nil {
			return err
		}
	}
	if err := d.installOperator(ctx); err != nil {
		return err
	}
	if err := d.applyMachineSet(ctx); err != nil {
		return err
	}
	if err := d.watchUntilReady(ctx); err != nil {
		return err
	}
	if err := d.showTables(ctx); err != nil {
		return err
	}
	if d.once {
		return nil
	}
	if err := d.serveOperatorPod(ctx); err != nil { // now the Linux nodes exist
		return err
	}
	d.output.printLine(d.formatSuggestions())
	return d.printChanges(ctx)
}

func (d *demo) bootLab(ctx context.Context) error {
	version, err := testenv.OperatorVersion(ctx, d.programs.operator)
	if err != nil {
		return err
	}
	options := testenv.Options{
		Network: testenv.RealNetwork{}, Dir: d.dir, Agent: d.programs.agent, Version: version, LinuxNodes: 3, ServiceCA: d.monitoring,
		ControlPlane: cluster.Options{Listen: net.JoinHostPort(apiAddress, apiPort), Listener: d.listener, Domain: domain},
	}
	if d.host == hostWine {
		d.output.printStep("booting a control plane")
		if options.PayloadDir, err = d.generateWinePayload(ctx, version); err != nil {
			return err
		}
	} else {
		d.output.printStep("booting a control plane and %d Windows hosts, one of them to add later", d.hosts+1)
		options.Hosts, options.VM = d.hostOptions(), virtualMachines
		if d.machines > 0 {
			options.MachineAPI, options.ControlPlane.Platform = true, string(platform)
		}
	}
	if d.env, err = testenv.New(ctx, options); err != nil {
		return err
	}
	d.controlPlane = d.env.Cluster().Done()
	return nil
}

// installOperator installs the operator, creates the Secret and the ConfigMap, and starts the operator with the rights
// of its ServiceAccount.
func (d *demo) installOperator(ctx context.Context) error {
	d.output.printStep("oc apply -f examples/wmco-namespace.yaml")
	object, err := testenv.Example("wmco-namespace.yaml")
	if err != nil {
		return err
	}
	if err := d.env.Apply(ctx, object); err != nil {
		return err
	}
	d.output.printStep("oc apply -k deploy/")
	if _, err := d.env.InstallOperator(ctx, testenv.Namespace); err != nil {
		return err
	}
	d.output.printStep("oc create secret generic cloud-private-key --from-file=private-key.pem=<a new key> -n %s",
		testenv.Namespace)
	if err := d.env.CreateKey(ctx); err != nil {
		return err
	}
	d.output.printStep("oc apply -f examples/windows-instances.yaml, with the lab's hosts")
	if err := d.env.SetInstances(ctx, d.listedEntries()); err != nil {
		return err
	}
	if err := os.Remove(d.log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("take away the log of the demo before: %w: choose another file with --operator-log", err)
	}
	metrics, err := d.startMonitoring(ctx)
	if err != nil {
		return err
	}
	d.operatorOptions = testenv.ProcessOptions{Program: d.programs.operator, Log: d.log, Flags: metrics}
	if d.operator, err = d.env.StartOperator(d.operatorOptions); err != nil {
		return err
	}
	d.output.printStep("the operator runs as its ServiceAccount; its log: %s", d.log)
	return nil
}

func (d *demo) close() error {
	if d.operator != nil {
		d.operator.Kill()
	}
	return errors.Join(d.closePod(), d.prometheus.close(), d.closeWine(), d.env.Close(), d.listener.Close())
}
