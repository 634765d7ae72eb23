// Package fleet reads the Windows nodes of a cluster from the API server, together with their instances, Machines and
// MachineSets, and relates these objects to each other. The package makes no decisions and writes nothing.
package fleet

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Fleet is a snapshot of the API server. Callers must not modify a Fleet.
type Fleet struct {
	Instances   []v1alpha1.WindowsInstance
	Nodes       []corev1.Node // Windows nodes only
	Machines    []machinev1beta1.Machine
	MachineSets []machinev1beta1.MachineSet

	instances map[string]*v1alpha1.WindowsInstance
	nodes     map[string]*corev1.Node
	machines  map[types.UID]*machinev1beta1.Machine
	sets      map[types.UID]*machinev1beta1.MachineSet
	// owners holds the instances by the UIDs of their Machines.
	owners map[types.UID]*v1alpha1.WindowsInstance
}

// Read reads the fleet, with the instances in the operator's namespace. A cluster without the Machine API has
// neither Machines nor MachineSets.
func Read(ctx context.Context, live client.Reader, namespace string) (*Fleet, error) {
	var instances v1alpha1.WindowsInstanceList
	var nodes corev1.NodeList
	var machines machinev1beta1.MachineList
	var sets machinev1beta1.MachineSetList
	for _, list := range []struct {
		what string
		read func() error
	}{
		{"WindowsInstances", func() error { return live.List(ctx, &instances, client.InNamespace(namespace)) }},
		{"Windows Nodes", func() error { return live.List(ctx, &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"}) }},
		{"Machines", func() error { return ListMachines(ctx, live, &machines, instances.Items) }},
		{"MachineSets", func() error { return ListMachines(ctx, live, &sets, instances.Items) }},
	} {
		if err := list.read(); err != nil {
			return nil, fmt.Errorf("list %s to find the unavailable nodes: %w", list.what, err)
		}
	}
	f := &Fleet{Instances: instances.Items, Nodes: nodes.Items, Machines: machines.Items, MachineSets: sets.Items}
	f.buildIndexes()
	return f, nil
}

func (f *Fleet) buildIndexes() {
	f.instances, f.owners = map[string]*v1alpha1.WindowsInstance{}, map[types.UID]*v1alpha1.WindowsInstance{}
	for i := range f.Instances {
		instance := &f.Instances[i]
		f.instances[instance.Name] = instance
		if reference := instance.Spec.Source.Machine; reference != nil {
			f.owners[reference.UID] = instance
		}
	}
	f.nodes = map[string]*corev1.Node{}
	for i := range f.Nodes {
		f.nodes[f.Nodes[i].Name] = &f.Nodes[i]
	}
	f.machines = map[types.UID]*machinev1beta1.Machine{}
	for i := range f.Machines {
		f.machines[f.Machines[i].UID] = &f.Machines[i]
	}
	f.sets = map[types.UID]*machinev1beta1.MachineSet{}
	for i := range f.MachineSets {
		f.sets[f.MachineSets[i].UID] = &f.MachineSets[i]
	}
}

// Instance returns the instance with the name; nil if none exists.
func (f *Fleet) Instance(name string) *v1alpha1.WindowsInstance { return f.instances[name] }

// InstanceOf returns the instance of a Machine; nil if none exists.
func (f *Fleet) InstanceOf(machine *machinev1beta1.Machine) *v1alpha1.WindowsInstance {
	return f.owners[machine.UID]
}

// Node returns the Windows Node with the name; nil if none exists.
func (f *Fleet) Node(name string) *corev1.Node { return f.nodes[name] }

// NodeOf returns the Node of an instance; nil if none exists.
func (f *Fleet) NodeOf(instance *v1alpha1.WindowsInstance) *corev1.Node {
	return f.nodes[f.NodeName(instance)]
}

// NodeName returns the name of the Node that an instance has claimed. Without a claim, it returns the Node of
// the Machine, for a Machine configured by a legacy operator (before version 12); "" if both are missing.
func (f *Fleet) NodeName(instance *v1alpha1.WindowsInstance) string {
	if reference := instance.Status.NodeRef; reference != nil && reference.Name != "" {
		return reference.Name
	}
	if machine := f.MachineOf(instance); machine != nil {
		return NodeNameOf(machine)
	}
	return ""
}

// MachineOf returns the Machine of an instance; nil if the instance has none, or the Machine no longer exists.
func (f *Fleet) MachineOf(instance *v1alpha1.WindowsInstance) *machinev1beta1.Machine {
	if instance.Spec.Source.Machine == nil {
		return nil
	}
	return f.machines[instance.Spec.Source.Machine.UID]
}

// SetOf returns the MachineSet that would replace a deleted Machine; nil if none exists.
func (f *Fleet) SetOf(machine *machinev1beta1.Machine) *machinev1beta1.MachineSet {
	if owner := metav1.GetControllerOf(machine); owner != nil {
		return f.sets[owner.UID]
	}
	return nil
}

// SetName returns the name of the MachineSet that controls the Machine of an instance, even if the MachineSet
// no longer exists; "" if there is none.
func (f *Fleet) SetName(instance *v1alpha1.WindowsInstance) string {
	machine := f.MachineOf(instance)
	if machine == nil {
		return ""
	}
	if owner := metav1.GetControllerOf(machine); owner != nil && owner.Kind == "MachineSet" {
		return owner.Name
	}
	return ""
}

// NodeNameOf returns the name of the Node of a Machine; "" if the Machine has no Node yet.
func NodeNameOf(machine *machinev1beta1.Machine) string {
	if machine.Status.NodeRef == nil {
		return ""
	}
	return machine.Status.NodeRef.Name
}
