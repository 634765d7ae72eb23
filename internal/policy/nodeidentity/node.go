// Package nodeidentity decides what belongs to what: a Node to an instance or an older operator, instances to one host, a
// host to a Machine, an SSH host key to a host. It reads from a Node whether it works. It relies only on facts from the
// operator, the Machine API or the list of hosts, and grants nothing.
package nodeidentity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Owns reports whether a Node is an instance's own, and so may be drained and deleted with it. others are all
// instances.
//
// The statuses of instances decide, because only the operator writes them. The kubelet of a Node can write that Node's
// annotations: it must neither escape its removal by them, nor become the Node of another instance. The annotation
// counts only without such a status: for an instance that was deleted and made again.
func Owns(instance *v1alpha1.WindowsInstance, node *corev1.Node, others []v1alpha1.WindowsInstance) bool {
	if slices.ContainsFunc(others, func(other v1alpha1.WindowsInstance) bool {
		return other.Name != instance.Name && other.Spec.DesiredState != v1alpha1.DesiredStateRemoved && holdsNode(&other, node)
	}) {
		return false
	}
	bound, ref := node.Annotations[v1alpha1.AnnotationInstance], instance.Status.NodeRef
	named := ref != nil && ref.Confirmed && ref.Name == node.Name
	switch {
	case Bound(instance, node):
		return true
	case bound != "":
		return bound == instance.Name
	}
	// The kubelet has registered it, and the operator was ended before it could bind it.
	return named && Unproven(node)
}

// holdsNode reports whether an instance's status says that the Node is its own or, as long as no Node was seen, that
// the name is.
func holdsNode(instance *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	ref := instance.Status.NodeRef
	return ref != nil && ref.Confirmed && ref.Name == node.Name && (ref.UID == "" || ref.UID == string(node.UID))
}

// ConfirmedName is the node name that an instance has, and not only claims; empty when there is none.
func ConfirmedName(instance *v1alpha1.WindowsInstance) string {
	if ref := instance.Status.NodeRef; ref != nil && ref.Confirmed {
		return ref.Name
	}
	return ""
}

// Bound reports whether the instance was bound to this Node. The Node's own annotations do not count: its kubelet may
// write them.
func Bound(instance *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	ref := instance.Status.NodeRef
	return ref != nil && ref.Confirmed && ref.Name == node.Name && ref.UID != "" && ref.UID == string(node.UID)
}

// OlderNode reports whether an operator before version 12 has configured the Node, and no instance has taken it over
// yet. Such an operator knows no instances.
func OlderNode(node *corev1.Node) bool {
	if node.Labels[corev1.LabelOSStable] != "windows" || node.Annotations[v1alpha1.AnnotationInstance] != "" {
		return false
	}
	_, configured := node.Annotations[v1alpha1.AnnotationVersion]
	_, keyed := node.Annotations[v1alpha1.AnnotationPubKeyHash]
	return configured || keyed
}

// ServesOlder reports whether the host of a Windows Node may still depend on objects in the cluster of another version
// than the given one: the Node was not taken over yet, or was not brought up to date since.
func ServesOlder(node *corev1.Node, version string) bool {
	if OlderNode(node) {
		return true
	}
	if configured := node.Annotations[v1alpha1.AnnotationVersion]; configured != "" && configured != version {
		return true
	}
	_, desired := node.Annotations[v1alpha1.AnnotationDesiredVersion]
	return desired
}

// KeepsNode reports whether an instance should be or stay a node, and its claim to the name is confirmed.
func KeepsNode(instance *v1alpha1.WindowsInstance) bool {
	return ConfirmedName(instance) != "" && instance.Spec.DesiredState != v1alpha1.DesiredStateRemoved
}
