package nodeidentity

import (
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const (
	// LabelMachineRole is the role label of a Machine.
	LabelMachineRole = "machine.openshift.io/cluster-api-machine-role"
	// RoleControlPlane is the value of LabelMachineRole on Machines of the control plane.
	RoleControlPlane = "master"
)

// IsWindowsMachine reports whether the operator manages the Machine unless it must be ignored. A Machine of the
// control plane is never managed, regardless of other labels.
func IsWindowsMachine(machine *machinev1beta1.Machine) bool { return hasWindowsLabels(machine.Labels) }

// IsWindowsMachineSet reports whether a MachineSet creates Windows Machines.
func IsWindowsMachineSet(set *machinev1beta1.MachineSet) bool {
	return hasWindowsLabels(set.Spec.Template.Labels)
}

func hasWindowsLabels(labels map[string]string) bool {
	return labels[v1alpha1.LabelMachineOSID] == v1alpha1.MachineOSIDWindows &&
		labels[LabelMachineRole] != RoleControlPlane
}

// IsOwnMachine reports whether the instance was created for this Machine, and not for another Machine of the same name.
func IsOwnMachine(instance *v1alpha1.WindowsInstance, machine *machinev1beta1.Machine) bool {
	of := instance.Spec.Source.Machine
	return of != nil && of.Namespace == machine.Namespace && of.Name == machine.Name && of.UID == machine.UID
}

// IsUnmanagedMachine reports whether a listed host is the virtual machine of an unmanaged Machine: either no Windows
// Machine, or a Machine with the ignore label. The address in the list decides, never the host.
func IsUnmanagedMachine(instance *v1alpha1.WindowsInstance, machine *machinev1beta1.Machine) bool {
	if instance.Spec.Source.Machine != nil ||
		IsWindowsMachine(machine) && machine.Labels[v1alpha1.LabelIgnore] != "true" {
		return false
	}
	return slices.ContainsFunc(machine.Status.Addresses, func(a corev1.NodeAddress) bool {
		return strings.EqualFold(a.Address, instance.Spec.Address)
	})
}
