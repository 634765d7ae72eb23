package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/namespace"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// errNotReady means that hosts were not Ready in time.
var errNotReady = errors.New("not all hosts are Ready")

// How long a simulated host takes to reboot: long enough to be seen.
const (
	rebootDuration = 2 * time.Second
	bootDelay      = time.Second
)

// demo is a demo that runs, inside of the namespaces.
type demo struct {
	*demoOptions
	dir      string
	output   *output
	listener *net.TCPListener
	rig      *rig.Rig
	operator *operatorProcess
	board    *board
}

// listen takes the listener that was opened outside.
func (d *demo) listen(environment *namespace.Environment) error {
	file := environment.Files[0]
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("take the port of the API server: %w", err)
	}
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("take the port of the API server: it is a %T", listener)
	}
	d.listener = tcp
	return nil
}

// run does what the guide tells an administrator to do, and shows how it goes.
func (d *demo) run(ctx context.Context) (err error) {
	d.output.step("booting a control plane and %d Windows hosts, one of them to add later", d.hosts+1)
	if err := d.boot(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.install(ctx); err != nil {
		return err
	}
	if err := d.watch(ctx); err != nil {
		return err
	}
	if d.once {
		return nil
	}
	d.output.println(d.whatToTry())
	return d.follow(ctx)
}

func (d *demo) boot(ctx context.Context) error {
	version, err := operatorVersion(ctx, d.programs.operator)
	if err != nil {
		return err
	}
	hosts := rig.Hosts(d.hosts + 1)
	for i := range hosts {
		hosts[i].RebootDuration, hosts[i].BootDelay = rebootDuration, bootDelay
	}
	d.rig, err = rig.New(ctx, rig.Options{
		Hosts: hosts, Network: rig.RealNetwork{}, Dir: d.dir, Agent: d.programs.agent, Version: version, LinuxNodes: 3,
		ControlPlane: cluster.Options{Listen: net.JoinHostPort(apiAddress, apiPort), Listener: d.listener, Domain: domain},
	})
	return err
}

// install installs the operator, makes Secret and ConfigMap, and starts the operator with the rights of its ServiceAccount.
func (d *demo) install(ctx context.Context) error {
	d.output.step("oc apply -f examples/namespace.yaml")
	object, err := rig.Example("namespace.yaml")
	if err != nil {
		return err
	}
	if err := d.rig.Apply(ctx, object); err != nil {
		return err
	}
	d.output.step("oc apply -k deploy/")
	config, err := d.rig.InstallOperator(ctx, rig.Namespace)
	if err != nil {
		return err
	}
	d.output.step("oc create secret generic cloud-private-key --from-file=private-key.pem=<a new key> -n %s", rig.Namespace)
	if err := d.rig.CreateKey(ctx); err != nil {
		return err
	}
	d.output.step("oc apply -f examples/windows-instances.yaml, with the lab's hosts")
	if err := d.rig.ListHosts(ctx, d.listed()...); err != nil {
		return err
	}
	kubeconfig := filepath.Join(d.dir, "operator.kubeconfig")
	if err := d.rig.Cluster().WriteKubeconfig(kubeconfig, config); err != nil {
		return err
	}
	if err := os.Remove(d.log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("take away the log of the demo before: %w: choose another file with --operator-log", err)
	}
	d.operator, err = startOperator(operatorOptions{
		program: d.programs.operator, kubeconfig: kubeconfig, payload: d.rig.PayloadDir(), cache: filepath.Join(d.dir, "operator-cache"),
		namespace: rig.Namespace, log: d.log,
	})
	if err != nil {
		return err
	}
	d.output.step("the operator runs as its ServiceAccount; its log: %s", d.log)
	return nil
}

// listed are the hosts that become nodes: all but the last, which is for the user to add.
func (d *demo) listed() []string {
	var names []string
	for _, h := range d.rig.Hosts()[:d.hosts] {
		names = append(names, h.Options.Name)
	}
	return names
}

func (d *demo) spare() *rig.Host { return d.rig.Hosts()[d.hosts] }

func (d *demo) close() error {
	if d.operator != nil {
		d.operator.kill()
	}
	return errors.Join(d.rig.Close(), d.listener.Close())
}
