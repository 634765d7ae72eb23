package nodeidentity

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// ReachedHost is the identity of the host at the address of an instance, as reported by the agent.
type ReachedHost struct {
	MachineID string
	// NodeName is the name of the Node that the host was last configured as; empty if the host was never configured.
	NodeName string
}

// HasOtherMachine reports whether the machine last reached at the address of an instance is known to differ from the
// machine of its Node.
func HasOtherMachine(instance *v1alpha1.WindowsInstance) bool {
	ref, host := instance.Status.NodeRef, instance.Status.Host
	return ref != nil && ref.Confirmed && ref.MachineID != "" && (host == nil || host.MachineID != ref.MachineID)
}

// HostMismatch returns a sentence that explains why the reached host is not the host of the instance's Node; empty if
// they match, or if the instance has no Node. A shared or an accepted host key lets the operator reach another host.
//
// The configuration on the host decides: only administrators of the host can write it. A host without configuration
// was reinstalled, is restored already, or is another machine. Another machine is a mismatch only while the Node is
// Ready, which proves that the host of the Node runs. If node, the Node of the instance, is nil, this check is
// skipped. The last parameter contains all instances.
func HostMismatch(instance *v1alpha1.WindowsInstance, reached ReachedHost, node *corev1.Node,
	others []v1alpha1.WindowsInstance) string {
	name := ConfirmedName(instance)
	if name == "" || reached.NodeName == name {
		return ""
	}
	ref := instance.Status.NodeRef
	if reached.NodeName == "" {
		if ref.MachineID == "" || ref.MachineID == reached.MachineID || node == nil || !IsReady(node) {
			return ""
		}
		return fmt.Sprintf("The host that answers at %s is not configured and has another machine ID than the host of Node %s, "+
			"and Node %s is Ready: the host of the Node runs at another address.", instance.Spec.Address, name, name)
	}
	holder := holderOf(reached.NodeName, instance, others)
	switch {
	case holder != nil:
		return fmt.Sprintf("The host that answers at %s is configured as Node %s of WindowsInstance %s (%s). It is not the host of Node %s.",
			instance.Spec.Address, reached.NodeName, holder.Name, holder.Spec.Address, name)
	case ref.UID == "":
		return "" // configured under a previous name: the Node of the current name was never registered
	}
	return fmt.Sprintf("The host that answers at %s is configured as Node %s. It is not the host of Node %s.",
		instance.Spec.Address, reached.NodeName, name)
}

// holderOf returns the other instance that has a confirmed node name; nil if there is none.
func holderOf(nodeName string, instance *v1alpha1.WindowsInstance, others []v1alpha1.WindowsInstance) *v1alpha1.WindowsInstance {
	for i := range others {
		if other := &others[i]; other.Name != instance.Name && ConfirmedName(other) == nodeName {
			return other
		}
	}
	return nil
}
