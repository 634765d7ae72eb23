package nodeidentity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// IsSameHost reports whether the statuses of two instances come from one Windows host: same host key and same machine
// ID.
func IsSameHost(a, b *v1alpha1.WindowsInstance) bool {
	return a.Status.HostKey != nil && b.Status.HostKey != nil && a.Status.HostKey.Key == b.Status.HostKey.Key &&
		a.Status.Host != nil && b.Status.Host != nil && a.Status.Host.MachineID == b.Status.Host.MachineID
}

// HasSharedAddress reports whether two hosts have reported a common address.
func HasSharedAddress(a, b *v1alpha1.WindowsInstance) bool {
	return slices.ContainsFunc(a.Status.Host.Addresses, func(address string) bool {
		return slices.Contains(b.Status.Host.Addresses, address)
	})
}

// Fate is the handling of the host of an instance that is being removed.
type Fate int

const (
	// Restored means that the removal restores the host, and removes the Node of the instance from the cluster.
	Restored Fate = iota
	// Unchanged means that the host is not changed: another instance has it.
	Unchanged
	// Inherited means that the host is not changed, and another instance must adopt the Node of this instance. This
	// instance must exist until then: otherwise nothing would delete the Node if the other instance is removed too.
	Inherited
	// Follows means that another instance of the host is being removed too, and restores the host first.
	Follows
)

// FateOf returns the handling of the host of a listed instance that is being removed, and the other instance that
// determines the result; nil for Restored. node is the Node of the instance's name; nil if there is none. The last
// parameter contains all instances.
func FateOf(removed *v1alpha1.WindowsInstance, node *corev1.Node,
	others []v1alpha1.WindowsInstance) (Fate, *v1alpha1.WindowsInstance) {
	named := node
	if node != nil && !IsNodeOwner(removed, node, nil) { // instances with the same name count below
		node = nil
	}
	var heir, first *v1alpha1.WindowsInstance
	for i := range others {
		switch other := &others[i]; {
		case isSharedWith(other, removed, node) && hasAdopted(other, removed, node):
			return Unchanged, other
		case isSharedWith(other, removed, node):
			heir = other
		case hasRestorePriority(other, removed, named):
			first = other
		}
	}
	switch {
	case heir != nil:
		return Inherited, heir
	case first != nil:
		return Follows, first
	}
	return Restored, nil
}

// isSharedWith reports whether the host of an instance that is being removed also belongs to the other instance, so
// that the host must not be changed. The result is false if the other instance is unmanaged and has not configured
// the host. It is also false if the removed instance has its own Ready Node and last reached a different machine: the
// host of that Node runs elsewhere.
func isSharedWith(other, removed *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	if other.Name == removed.Name || other.Spec.DesiredState == v1alpha1.DesiredStateRemoved || !IsSameHost(other, removed) {
		return false
	}
	if ConfirmedName(other) == "" {
		return other.Spec.DesiredState != v1alpha1.DesiredStateUnmanaged
	}
	if node != nil && IsReady(node) && HasOtherMachine(removed) && ConfirmedName(other) != ConfirmedName(removed) {
		return false
	}
	return !isClone(other, removed)
}

// isClone reports whether two instances are machines created from one image, including host key and machine ID: each
// has its own Node, and the two have no common address.
func isClone(a, b *v1alpha1.WindowsInstance) bool {
	names := [2]string{ConfirmedName(a), ConfirmedName(b)}
	return names[0] != "" && names[1] != "" && names[0] != names[1] && !HasSharedAddress(a, b)
}

// hasAdopted reports whether nothing in the cluster depends on the removed instance any more: this instance never
// had a node name, or the other instance is bound to the Node or has another Node.
func hasAdopted(other, removed *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	switch name := ConfirmedName(removed); {
	case name == "":
		return true
	case ConfirmedName(other) == "":
		return false
	case ConfirmedName(other) != name, node == nil, other.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged:
		return true
	}
	return IsBound(other, node)
}

// hasRestorePriority reports whether the other of two removed instances of one host restores the host. The instance
// with the Node does, so that the node is drained first. The host of a Machine is deleted with the Machine and never
// restored.
func hasRestorePriority(other, removed *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	if other.Name == removed.Name || other.Spec.DesiredState != v1alpha1.DesiredStateRemoved ||
		other.Spec.Source.Machine != nil || !IsSameHost(other, removed) || isClone(other, removed) {
		return false
	}
	if a, b := claimProgress(other, node), claimProgress(removed, node); a != b {
		return a > b
	}
	return other.Name < removed.Name
}

// claimProgress returns the progress of an instance toward a node: 0 for no name, 1 for a name, 2 for a Node that may
// no longer exist, 3 for an existing Node. The Node's annotations count here, because the result only decides which
// instance restores the host.
func claimProgress(instance *v1alpha1.WindowsInstance, node *corev1.Node) int {
	switch ref := instance.Status.NodeRef; {
	case ref == nil || !ref.Confirmed:
		return 0
	case node != nil && (IsBound(instance, node) || node.Annotations[v1alpha1.AnnotationInstance] == instance.Name):
		return 3
	case ref.UID == "":
		return 1
	}
	return 2
}
