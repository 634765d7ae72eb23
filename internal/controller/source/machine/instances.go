package machine

import (
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/source"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

// settings are the common settings of all instances of Machines.
type settings struct {
	// namespace is the namespace of the operator.
	namespace, platform string
	strategies          strategies
}

// diffInstances returns the changes from the current instances to the desired instances of the Machines, and the
// Machines without an instance because their name is taken. machines are all Machines that may have an instance or
// already have one. present are the WindowsInstances of every source.
func diffInstances(c settings, machines []*machinev1beta1.Machine,
	present []v1alpha1.WindowsInstance) (result []source.Change, taken []*machinev1beta1.Machine) {
	byName := make(map[string]*v1alpha1.WindowsInstance, len(present))
	for i := range present {
		byName[present[i].Name] = &present[i]
	}
	add := func(change source.Change, ok bool) {
		if ok {
			result = append(result, change)
		}
	}
	for _, machine := range slices.SortedFunc(slices.Values(machines), compareMachineNames) {
		have, ok := byName[machine.Name]
		switch {
		case !ok:
			add(newInstance(c, machine))
		case have.Spec.Source.Machine == nil:
			if _, wanted := newInstance(c, machine); wanted {
				taken = append(taken, machine)
			}
		case isInstanceOf(have, machine):
			delete(byName, machine.Name)
			add(source.UpdateSpec(have, updatedSpec(c, machine, have.Spec)))
		}
		// An instance of an earlier Machine with this name is removed first, below; then the new instance is
		// created.
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if have := byName[name]; have.Spec.Source.Machine != nil {
			add(source.Remove(have))
		}
	}
	return result, taken
}

func compareMachineNames(a, b *machinev1beta1.Machine) int {
	switch {
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return 0
}

// isInstanceOf reports whether an instance belongs to this Machine, and not to another Machine with the same name.
func isInstanceOf(instance *v1alpha1.WindowsInstance, machine *machinev1beta1.Machine) bool {
	reference := instance.Spec.Source.Machine
	return reference != nil && reference.Name == machine.Name && reference.UID == machine.UID
}

// newInstance returns the new instance of a Machine, if the Machine already needs one.
func newInstance(c settings, machine *machinev1beta1.Machine) (source.Change, bool) {
	v := newMachineView(machine)
	if state, _ := v.desiredState(); state != v1alpha1.DesiredStateNode || v.hostAddress("") == "" {
		return source.Change{}, false
	}
	return source.Change{After: &v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace,
			Name:      machine.Name,
			Labels:    map[string]string{v1alpha1.LabelSource: v1alpha1.SourceMachine},
		},
		Spec: updatedSpec(c, machine, v1alpha1.WindowsInstanceSpec{}),
	}}, true
}

// updatedSpec returns the desired spec of a Machine's instance; present is the current spec. While the host and the
// Node are unmanaged, only the desired state changes. The address is kept while the Machine has none.
func updatedSpec(c settings, machine *machinev1beta1.Machine,
	present v1alpha1.WindowsInstanceSpec) v1alpha1.WindowsInstanceSpec {
	v := newMachineView(machine)
	state, reason := v.desiredState()
	if state == v1alpha1.DesiredStateUnmanaged {
		present.DesiredState, present.DesiredStateReason = state, reason
		return present
	}
	address := v.hostAddress(present.Address)
	if address == "" {
		address = present.Address
	}
	metadata, _ := v.nodeMetadata()
	return v1alpha1.WindowsInstanceSpec{
		Address:  address,
		Username: userdata.User(c.platform),
		Source: v1alpha1.Source{Machine: &v1alpha1.MachineReference{
			Namespace: machine.Namespace, Name: machine.Name, UID: machine.UID}},
		HostName:        hostName(c.platform, machine.Name),
		Node:            metadata,
		DesiredState:    v1alpha1.DesiredStateNode,
		UpgradeStrategy: c.strategies.forMachineSet(v.set),
	}
}
