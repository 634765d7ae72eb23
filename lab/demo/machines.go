package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/machineset"
	"github.com/windows-machine-config/wmco/lab/linuxns"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

const (
	// platform is a platform with Machines, and with images that receive the key only from the user data.
	platform = configv1.AWSPlatformType
	// windowsImage is the image in the MachineSet. The lab's cloud derives the Windows version from it.
	windowsImage = "ami-00000000000002022"
	// userDataTimeout is the time that the operator may take to create the user data after its start.
	userDataTimeout = time.Minute
	machineAPI      = v1alpha1.MachineNamespace
)

// Durations of the cloud's virtual machines: long enough to be visible.
var virtualMachines = testenv.VMOptions{
	BootDuration: 3 * time.Second, UserDataDelay: 4 * time.Second, RebootDuration: rebootDuration, SSHDelay: bootDelay,
}

// desiredMachines returns the number of Machines in the MachineSet; Wine hosts have no cloud.
func (o *demoOptions) desiredMachines() int {
	if o.host == hostWine {
		return 0
	}
	return o.machines
}

// reserveMachines adds the addresses and names for the cloud to the lab's network.
func (o *demoOptions) reserveMachines(config *linuxns.Config) {
	if o.host == hostWine {
		return
	}
	for n := range testenv.MachineAddresses {
		address := netip.MustParseAddr(testenv.MachineAddress(n + 1))
		config.Addresses = append(config.Addresses, address)
		config.Names[testenv.MachineDNSName(string(platform), address.String())] = address
	}
}

// applyMachineSet creates a Windows MachineSet without Machines, as kubectl windows machineset does, and scales
// it.
func (d *demo) applyMachineSet(ctx context.Context) error {
	if d.desiredMachines() == 0 {
		return nil
	}
	set, err := d.generateMachineSet(ctx)
	if err != nil {
		return err
	}
	d.machineSet = set.Name
	d.output.printStep("kubectl windows machineset apply --image %s", windowsImage)
	if err := d.env.Client.Create(ctx, set); err != nil {
		return fmt.Errorf("make MachineSet %s: %w", set.Name, err)
	}
	limited, cancel := context.WithTimeout(ctx, userDataTimeout)
	defer cancel()
	if err := d.env.WaitUserData(limited); err != nil {
		return err
	}
	d.output.printStep("oc scale --replicas=%d machineset %s -n %s", d.desiredMachines(), set.Name, machineAPI)
	return d.env.Scale(ctx, set.Name, int32(d.desiredMachines())) // limited by the flag
}

func (d *demo) generateMachineSet(ctx context.Context) (*machinev1.MachineSet, error) {
	infrastructure := &configv1.Infrastructure{}
	if err := d.env.Client.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure); err != nil {
		return nil, fmt.Errorf("read the cluster's infrastructure: %w", err)
	}
	var sets machinev1.MachineSetList
	if err := d.env.Client.List(ctx, &sets, client.InNamespace(machineAPI)); err != nil {
		return nil, fmt.Errorf("list MachineSets: %w", err)
	}
	if len(sets.Items) == 0 {
		return nil, fmt.Errorf("the cluster has no MachineSet of Linux workers to make one for Windows from")
	}
	return machineset.Generate(machineset.Options{
		Platform: platform, InfrastructureName: infrastructure.Status.InfrastructureName, Version: "2022",
		Image:  windowsImage,
		Worker: sets.Items[0].Spec.Template.Spec.ProviderSpec.Value,
	})
}

// showTables prints the output of kubectl for Machines and nodes when the MachineSet is available.
func (d *demo) showTables(ctx context.Context) error {
	if d.desiredMachines() == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, userDataTimeout)
	defer cancel()
	if _, err := d.env.WaitMachinesReady(limited, d.machineSet, d.desiredMachines()); err != nil {
		return err
	}
	for _, t := range []struct{ command, path string }{
		{"kubectl get machineset -n " + machineAPI, "/apis/machine.openshift.io/v1beta1/namespaces/" +
			machineAPI + "/machinesets"},
		{"kubectl get machine -n " + machineAPI, "/apis/machine.openshift.io/v1beta1/namespaces/" + machineAPI + "/machines"},
		{"kubectl get nodes", "/api/v1/nodes"},
	} {
		d.output.printLine("\n$ " + t.command)
		if err := d.printTable(ctx, t.path); err != nil {
			return err
		}
	}
	return nil
}
