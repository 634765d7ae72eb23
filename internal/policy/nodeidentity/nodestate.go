package nodeidentity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// IsReady reports whether the kubelet of a Node reports the condition Ready as true.
func IsReady(node *corev1.Node) bool {
	condition := ReadyCondition(node)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

// ReadyCondition returns the Ready condition that the kubelet reports; nil before the first report.
func ReadyCondition(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// IsUninitialized reports whether the cloud controller manager has not initialized a Node yet: the Node accepts no
// pods, and lacks the cloud's facts. A kubelet registers with the taint if the platform has such a controller.
func IsUninitialized(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == v1alpha1.TaintUninitialized })
}

// IsDrained reports whether the drain that the operator cordoned a Node for is complete. A Node that was uncordoned
// since may have other pods.
func IsDrained(node *corev1.Node) bool {
	began, ours := node.Annotations[v1alpha1.AnnotationCordoned]
	return ours && node.Spec.Unschedulable && node.Annotations[v1alpha1.AnnotationDrained] == began
}

// HasStartupTaint reports whether a Node has the operator's start-up taint: the operator has not verified the Node
// yet, and the Node accepts no pods. A kubelet registers with the taint, and cannot add it later.
func HasStartupTaint(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, IsStartupTaint)
}

// IsStartupTaint reports whether a taint is the operator's start-up taint, under its current or former key.
func IsStartupTaint(taint corev1.Taint) bool {
	return taint.Key == v1alpha1.TaintNotReady || taint.Key == v1alpha1.TaintNotReadyFormer
}

// InternalIPs returns the internal IP addresses among the addresses of a Node or a Machine.
func InternalIPs(addresses []corev1.NodeAddress) []string {
	var ips []string
	for _, address := range addresses {
		if address.Type == corev1.NodeInternalIP {
			ips = append(ips, address.Address)
		}
	}
	return ips
}
