package nodeidentity

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Keeper is what is known of the instance that keeps watch over a Node.
type Keeper int

const (
	// NotOurs means that the operator has not configured the Node, or that an older operator has.
	NotOurs Keeper = iota
	// Kept means that an instance has the Node, or claims its name.
	Kept
	// NotBoundYet means that the instance that the Node names was made again and does not know the Node yet.
	NotBoundYet
	// Orphaned means that no instance has the Node: nobody watches over its host.
	Orphaned
)

// KeeperOf finds out whether any of the instances has the Node. The annotations of the Node count only here: nothing is
// done to a Node for them, and the host of a Node that lies is reported at most.
func KeeperOf(node *corev1.Node, instances []v1alpha1.WindowsInstance) Keeper {
	bound := node.Annotations[v1alpha1.AnnotationInstance]
	if bound == "" && (!labeledOurs(node) || OlderNode(node)) {
		return NotOurs
	}
	keeper := Orphaned
	for i := range instances {
		switch ref := instances[i].Status.NodeRef; {
		case ref != nil && ref.Name == node.Name:
			return Kept
		case ref == nil && instances[i].Name == bound:
			keeper = NotBoundYet
		}
	}
	return keeper
}

// labeledOurs reports whether a Node has the labels that a host registers with that this operator configures.
func labeledOurs(node *corev1.Node) bool {
	return node.Labels[corev1.LabelOSStable] == "windows" &&
		(node.Labels[v1alpha1.LabelOSID] != "" || node.Labels[v1alpha1.LabelBYOH] != "")
}
