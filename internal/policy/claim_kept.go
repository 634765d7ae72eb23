package policy

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// BoundNode reports whether a Node is the one that the instance was bound to. What the Node says of itself does not count: its kubelet may write
// annotations.
func BoundNode(instance *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	ref := instance.Status.NodeRef
	return ref != nil && ref.Confirmed && ref.Name == node.Name && ref.UID != "" && ref.UID == string(node.UID)
}

// NameKept decides whether the node name that was granted to an instance is still its own to have certificates and a Node for. What other
// instances claim is not looked at, since who has confirmed a claim keeps it; but another machine's Node may have come by that name, or a
// Machine with it.
func NameKept(claim Claim) Decision {
	if claim.Node != nil && BoundNode(&claim.Instance, claim.Node) {
		return Decision{Allowed: true}
	}
	if decision := againstMachines(claim); !decision.Allowed {
		return decision
	}
	return againstNode(claim)
}
