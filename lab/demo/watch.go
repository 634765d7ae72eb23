package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// pollInterval is the interval between reads of the hosts. The operator writes the progress of a host less
// often.
const pollInterval = 500 * time.Millisecond

// watchUntilReady prints the progress of the hosts until all are Ready. With --once, it also ends after the limit, and
// reports the hosts that are not Ready.
func (d *demo) watchUntilReady(ctx context.Context) error {
	var limit <-chan time.Time
	if d.once {
		limit = time.After(d.timeout)
	}
	err := d.pollHosts(ctx, limit, func() bool { return d.hostBoard.hasAllReady(d.expectedHosts()) })
	if err == nil {
		d.output.printStep("all %d hosts are Ready", d.expectedHosts())
		return nil
	}
	if errors.Is(err, errNotReady) {
		d.output.printLine(fmt.Sprintf("\nNot all hosts are Ready after %s:\n", d.timeout))
	}
	if ctx.Err() == nil {
		d.explainNotReady()
	}
	return err
}

// expectedHosts returns the number of hosts that must become Ready.
func (o *demoOptions) expectedHosts() int { return o.hosts + o.desiredMachines() }

// printChanges prints changes until the end, after all hosts were Ready.
func (d *demo) printChanges(ctx context.Context) error {
	return d.pollHosts(ctx, nil, func() bool { return false })
}

// pollHosts reads the hosts periodically and prints changes until done returns true. A failed read does not end
// the demo: only the first of consecutive failures is printed.
func (d *demo) pollHosts(ctx context.Context, limit <-chan time.Time, done func() bool) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	failed := false
	for {
		err := d.readHosts(ctx)
		if err != nil && !failed && ctx.Err() == nil && !isClosed(d.controlPlane) {
			d.output.printStep("%v; it is tried again until it succeeds", err)
		}
		failed = err != nil
		if !failed && done() {
			return nil
		}
		if err := d.awaitPoll(ctx, ticker.C, limit); err != nil {
			return err
		}
	}
}

// awaitPoll returns nil when the next read is due, otherwise the reason for the end. Every process ends with the
// control plane, so the end of the control plane is reported even if another end was detected first.
func (d *demo) awaitPoll(ctx context.Context, next, limit <-chan time.Time) error {
	select {
	case <-next:
	case <-limit:
		return errNotReady
	case <-d.operator.Done():
	case <-d.prometheus.doneChannel():
	case <-d.controlPlane:
	case <-ctx.Done():
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isClosed(d.controlPlane):
		return errors.New("the control plane has ended")
	case isClosed(d.prometheus.doneChannel()):
		return d.prometheus.Failure()
	case isClosed(d.operator.Done()):
		return d.restartOperator()
	}
	return nil
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func (d *demo) readHosts(ctx context.Context) error {
	var instances v1alpha1.WindowsInstanceList
	if err := d.env.Client.List(ctx, &instances, client.InNamespace(testenv.Namespace)); err != nil {
		return fmt.Errorf("list the instances: %w", err)
	}
	var machines machinev1.MachineList
	if d.desiredMachines() > 0 {
		err := d.env.Client.List(ctx, &machines, client.InNamespace(machineAPI), client.MatchingLabels{v1alpha1.LabelMachineOSID: "Windows"})
		if err != nil {
			return fmt.Errorf("list the Machines: %w", err)
		}
	}
	for _, line := range d.hostBoard.updateState(instances.Items, machines.Items) {
		d.output.printStep("%s", line)
	}
	return nil
}

// explainNotReady prints the reason for each host that is not Ready.
func (d *demo) explainNotReady() {
	listed := map[string]bool{}
	for _, instance := range d.hostBoard.instances {
		listed[instance.Spec.Address] = true
		if !isReady(instance) {
			d.output.printLine(testenv.Explain(instance))
		}
	}
	for name, machine := range d.hostBoard.machines {
		if d.hostBoard.instances[name] == nil {
			d.output.printLine(machineLine(machine))
		}
	}
	for address := range d.listedEntries() {
		if !listed[address] {
			d.output.printLine(address + ": there is no WindowsInstance for it; see the operator's log: " + d.log)
		}
	}
}
