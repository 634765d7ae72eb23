package nodeidentity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// SameHost reports whether the statuses of two instances come from one Windows host: same host key and same machine ID.
func SameHost(a, b *v1alpha1.WindowsInstance) bool {
	return a.Status.HostKey != nil && b.Status.HostKey != nil && a.Status.HostKey.Key == b.Status.HostKey.Key &&
		a.Status.Host != nil && b.Status.Host != nil && a.Status.Host.MachineID == b.Status.Host.MachineID
}

// ShareAddress reports whether two hosts have reported a common address.
func ShareAddress(a, b *v1alpha1.WindowsInstance) bool {
	return slices.ContainsFunc(a.Status.Host.Addresses, func(address string) bool {
		return slices.Contains(b.Status.Host.Addresses, address)
	})
}

// Fate is what happens to the host of an instance that is being removed.
type Fate int

const (
	// GivenBack means that the instance gives the host back, and takes its Node out of the cluster.
	GivenBack Fate = iota
	// Stays means that the host stays as it is: another instance has it.
	Stays
	// Inherited means that the host stays, and another instance is to take over the Node of this one. Until it has, this
	// instance must not go: nobody else would delete the Node if the other one is removed too.
	Inherited
	// Follows means that another instance of the host is being removed too, and gives the host back first.
	Follows
)

// FateOf returns what happens to the host of a listed instance that is being removed, and the other instance that
// decides it; nil for GivenBack. node is the Node of the instance's name; nil when there is none. others are all
// instances.
func FateOf(removed *v1alpha1.WindowsInstance, node *corev1.Node,
	others []v1alpha1.WindowsInstance) (Fate, *v1alpha1.WindowsInstance) {
	named := node
	if node != nil && !Owns(removed, node, nil) { // others with the same name count below
		node = nil
	}
	var heir, first *v1alpha1.WindowsInstance
	for i := range others {
		switch other := &others[i]; {
		case goesOnWith(other, removed, node) && hasTakenOver(other, removed, node):
			return Stays, other
		case goesOnWith(other, removed, node):
			heir = other
		case goesBefore(other, removed, named):
			first = other
		}
	}
	switch {
	case heir != nil:
		return Inherited, heir
	case first != nil:
		return Follows, first
	}
	return GivenBack, nil
}

// goesOnWith reports whether the host of an instance that is being removed also belongs to the other instance, so that
// it stays as it is. It does not when the other must be left alone and has not configured it, or when the removed instance
// has a Node of its own that is Ready, and has reached another machine than that of its Node last: the host of its Node
// runs elsewhere.
func goesOnWith(other, removed *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	if other.Name == removed.Name || other.Spec.DesiredState == v1alpha1.DesiredStateRemoved || !SameHost(other, removed) {
		return false
	}
	if ConfirmedName(other) == "" {
		return other.Spec.DesiredState != v1alpha1.DesiredStateUnmanaged
	}
	if node != nil && Ready(node) && OtherMachine(removed) && ConfirmedName(other) != ConfirmedName(removed) {
		return false
	}
	return !clones(other, removed)
}

// clones reports whether two instances are machines made from one image, host key and machine ID included: each has its
// own Node, and they have no common address.
func clones(a, b *v1alpha1.WindowsInstance) bool {
	names := [2]string{ConfirmedName(a), ConfirmedName(b)}
	return names[0] != "" && names[1] != "" && names[0] != names[1] && !ShareAddress(a, b)
}

// hasTakenOver reports whether nothing in the cluster depends on the removed instance any more: it never had a node
// name, the other instance is bound to its Node, or has a Node of its own.
func hasTakenOver(other, removed *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	switch name := ConfirmedName(removed); {
	case name == "":
		return true
	case ConfirmedName(other) == "":
		return false
	case ConfirmedName(other) != name, node == nil, other.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged:
		return true
	}
	return Bound(other, node)
}

// goesBefore reports whether of two instances of one host that are both being removed the other one gives it back: the
// one with the Node, so that the node is drained first. A Machine's host goes with its Machine, and is not given back.
func goesBefore(other, removed *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	if other.Name == removed.Name || other.Spec.DesiredState != v1alpha1.DesiredStateRemoved ||
		other.Spec.Source.Machine != nil || !SameHost(other, removed) || clones(other, removed) {
		return false
	}
	if a, b := claimed(other, node), claimed(removed, node); a != b {
		return a > b
	}
	return other.Name < removed.Name
}

// claimed returns how far an instance has come with its node name: 0 for no name, 1 for a name, 2 for a Node that may be
// gone, 3 for the Node that is there. What the Node says counts here: it only decides which instance gives the host back.
func claimed(instance *v1alpha1.WindowsInstance, node *corev1.Node) int {
	switch ref := instance.Status.NodeRef; {
	case ref == nil || !ref.Confirmed:
		return 0
	case node != nil && (Bound(instance, node) || node.Annotations[v1alpha1.AnnotationInstance] == instance.Name):
		return 3
	case ref.UID == "":
		return 1
	}
	return 2
}
