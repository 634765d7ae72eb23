package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// pollInterval is how often the hosts are read. The operator writes the progress of a host less often.
const pollInterval = 500 * time.Millisecond

// watch prints the progress of the hosts until all are Ready. With --once it ends after the limit as well, and reports
// what is missing.
func (d *demo) watch(ctx context.Context) error {
	var limit <-chan time.Time
	if d.once {
		limit = time.After(d.limit)
	}
	err := d.observe(ctx, limit, func() bool { return d.board.allReady(d.expected()) })
	if err == nil {
		d.output.step("all %d hosts are Ready", d.expected())
		return nil
	}
	if errors.Is(err, errNotReady) {
		d.output.println(fmt.Sprintf("\nNot all hosts are Ready after %s:\n", d.limit))
	}
	if ctx.Err() == nil {
		d.explain()
	}
	return err
}

// expected is how many hosts are to be Ready.
func (o *demoOptions) expected() int { return o.hosts + o.wantedMachines() }

// follow prints what changes, after all hosts were Ready, until the end.
func (d *demo) follow(ctx context.Context) error {
	return d.observe(ctx, nil, func() bool { return false })
}

// observe prints what changes until done returns true.
func (d *demo) observe(ctx context.Context, limit <-chan time.Time, done func() bool) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if err := d.look(ctx); err != nil {
			return err
		}
		if done() {
			return nil
		}
		var err error
		select {
		case <-ticker.C:
		case <-limit:
			err = errNotReady
		case <-d.operator.Done():
			err = d.restartOperator()
		case <-d.prometheus.done():
			err = d.prometheus.Failure()
		case <-d.rig.Cluster().Done():
			err = errors.New("the control plane has ended")
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// look reads the hosts, and prints a line for each that has changed.
func (d *demo) look(ctx context.Context) error {
	var instances v1alpha1.WindowsInstanceList
	if err := d.rig.Client.List(ctx, &instances, client.InNamespace(rig.Namespace)); err != nil {
		return fmt.Errorf("list the instances: %w", err)
	}
	var machines machinev1.MachineList
	if d.wantedMachines() > 0 {
		err := d.rig.Client.List(ctx, &machines, client.InNamespace(machineAPI), client.MatchingLabels{v1alpha1.LabelMachineOSID: "Windows"})
		if err != nil {
			return fmt.Errorf("list the Machines: %w", err)
		}
	}
	for _, line := range d.board.update(instances.Items, machines.Items) {
		d.output.step("%s", line)
	}
	return nil
}

// explain prints of each host that is not Ready why.
func (d *demo) explain() {
	listed := map[string]bool{}
	for _, instance := range d.board.instances {
		listed[instance.Spec.Address] = true
		if !isReady(instance) {
			d.output.println(rig.Explain(instance))
		}
	}
	for name, machine := range d.board.machines {
		if d.board.instances[name] == nil {
			d.output.println(machineLine(machine))
		}
	}
	for address := range d.listed() {
		if !listed[address] {
			d.output.println(address + ": there is no WindowsInstance for it; see the operator's log: " + d.log)
		}
	}
}
