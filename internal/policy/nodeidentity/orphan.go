package nodeidentity

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Ownership is the state of the instance that manages a Node.
type Ownership int

const (
	// NotOwned means that the operator has not configured the Node, or that a legacy operator has.
	NotOwned Ownership = iota
	// Owned means that an instance has the Node, or claims its name.
	Owned
	// NotBoundYet means that the instance in the Node's annotation was recreated and is not bound to the Node yet.
	NotBoundYet
	// Orphaned means that no instance has the Node, so that the host is not managed.
	Orphaned
)

// OwnershipOf returns the state of the instance that manages the Node. The annotations of the Node count only here: no
// Node is changed because of them. The worst result of a false annotation is a report about the host.
func OwnershipOf(node *corev1.Node, instances []v1alpha1.WindowsInstance) Ownership {
	bound := node.Annotations[v1alpha1.AnnotationInstance]
	if bound == "" && (!hasOperatorLabels(node) || IsLegacyNode(node)) {
		return NotOwned
	}
	keeper := Orphaned
	for i := range instances {
		switch ref := instances[i].Status.NodeRef; {
		case ref != nil && ref.Name == node.Name:
			return Owned
		case ref == nil && instances[i].Name == bound:
			keeper = NotBoundYet
		}
	}
	return keeper
}

// hasOperatorLabels reports whether a Node has the labels that a host registers with if this operator configured the
// host.
func hasOperatorLabels(node *corev1.Node) bool {
	return node.Labels[corev1.LabelOSStable] == "windows" &&
		(node.Labels[v1alpha1.LabelOSID] != "" || node.Labels[v1alpha1.LabelBYOH] != "")
}
