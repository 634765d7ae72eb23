package policy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// OwnNode reports whether a Node is an instance's own, and so may be drained and deleted with it. others are all instances.
//
// What the statuses of instances say decides, for only the operator writes them. The kubelet of a Node can write that Node's annotations: it must
// neither get away from its removal by them, nor become the Node of another instance. The annotation counts where no status knows better: for an
// instance that was deleted and made again.
func OwnNode(instance *v1alpha1.WindowsInstance, node *corev1.Node, others []v1alpha1.WindowsInstance) bool {
	if slices.ContainsFunc(others, func(other v1alpha1.WindowsInstance) bool {
		return other.Name != instance.Name && other.Spec.DesiredState != v1alpha1.DesiredStateRemoved && holdsNode(&other, node)
	}) {
		return false
	}
	bound, ref := node.Annotations[v1alpha1.AnnotationInstance], instance.Status.NodeRef
	named := ref != nil && ref.Confirmed && ref.Name == node.Name
	switch {
	case BoundNode(instance, node):
		return true
	case bound != "":
		return bound == instance.Name
	}
	// The kubelet has registered it, and the operator was ended before it could bind it.
	return named && startsUp(node)
}

// holdsNode reports whether an instance's status says that the Node is its own or, as long as no Node was seen, that the name is.
func holdsNode(instance *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	ref := instance.Status.NodeRef
	return ref != nil && ref.Confirmed && ref.Name == node.Name && (ref.UID == "" || ref.UID == string(node.UID))
}

// startsUp reports whether a Node has our start-up taint, which kubelets register with and cannot put on later.
func startsUp(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == v1alpha1.TaintNotReady })
}
