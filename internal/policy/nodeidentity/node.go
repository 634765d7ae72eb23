// Package nodeidentity determines ownership: of a Node by an instance or a legacy operator, of a host by instances or
// a Machine, and of an SSH host key by a host. The package also evaluates the conditions and taints of a Node. It
// relies only on facts from the operator, the Machine API or the list of hosts, and grants nothing.
package nodeidentity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// IsNodeOwner reports whether an instance owns a Node, so that the Node may be drained and deleted with the instance.
// The last parameter contains all instances.
//
// The statuses of instances decide, because only the operator writes them. The kubelet of a Node can write that
// Node's annotations: these must neither prevent the removal of the Node nor assign the Node to another instance. The
// annotation counts only without such a status: for an instance that was deleted and recreated.
func IsNodeOwner(instance *v1alpha1.WindowsInstance, node *corev1.Node, others []v1alpha1.WindowsInstance) bool {
	if slices.ContainsFunc(others, func(other v1alpha1.WindowsInstance) bool {
		return other.Name != instance.Name && other.Spec.DesiredState != v1alpha1.DesiredStateRemoved && hasNodeClaim(&other, node)
	}) {
		return false
	}
	bound, ref := node.Annotations[v1alpha1.AnnotationInstance], instance.Status.NodeRef
	named := ref != nil && ref.Confirmed && ref.Name == node.Name
	switch {
	case IsBound(instance, node):
		return true
	case bound != "":
		return bound == instance.Name
	}
	// The kubelet has registered the Node, but the operator was stopped before binding it.
	return named && HasStartupTaint(node)
}

// hasNodeClaim reports whether an instance's status claims the Node or, before any Node was seen, the name.
func hasNodeClaim(instance *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	ref := instance.Status.NodeRef
	return ref != nil && ref.Confirmed && ref.Name == node.Name && (ref.UID == "" || ref.UID == string(node.UID))
}

// ConfirmedName returns the confirmed node name of an instance; empty if there is none, or only a claim.
func ConfirmedName(instance *v1alpha1.WindowsInstance) string {
	if ref := instance.Status.NodeRef; ref != nil && ref.Confirmed {
		return ref.Name
	}
	return ""
}

// IsBound reports whether the instance was bound to this Node. The Node's own annotations do not count, because the
// kubelet may write them.
func IsBound(instance *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	ref := instance.Status.NodeRef
	return ref != nil && ref.Confirmed && ref.Name == node.Name && ref.UID != "" && ref.UID == string(node.UID)
}

// IsLegacyNode reports whether a legacy operator (before version 12) configured the Node, and no instance has adopted
// it yet. Such an operator has no instances.
func IsLegacyNode(node *corev1.Node) bool {
	if node.Labels[corev1.LabelOSStable] != "windows" || node.Annotations[v1alpha1.AnnotationInstance] != "" {
		return false
	}
	_, configured := node.Annotations[v1alpha1.AnnotationVersion]
	_, keyed := node.Annotations[v1alpha1.AnnotationPubKeyHash]
	return configured || keyed
}

// NeedsOtherVersion reports whether the host of a Windows Node may still depend on cluster objects of a version other
// than the given one: the Node is not adopted yet, or was not upgraded since.
func NeedsOtherVersion(node *corev1.Node, version string) bool {
	if IsLegacyNode(node) {
		return true
	}
	if configured := node.Annotations[v1alpha1.AnnotationVersion]; configured != "" && configured != version {
		return true
	}
	_, desired := node.Annotations[v1alpha1.AnnotationDesiredVersion]
	return desired
}

// ShouldKeepNode reports whether an instance should be or stay a node, and has a confirmed claim to the name.
func ShouldKeepNode(instance *v1alpha1.WindowsInstance) bool {
	return ConfirmedName(instance) != "" && instance.Spec.DesiredState != v1alpha1.DesiredStateRemoved
}
