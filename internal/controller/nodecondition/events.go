package nodecondition

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// conditionEvent is one Kubernetes event on a WindowsInstance, made by the constructors below and nowhere else.
type conditionEvent struct {
	regarding         *v1alpha1.WindowsInstance
	related           *corev1.Node
	eventType, reason string
	message           string
}

func (r *Reconciler) emit(e conditionEvent) {
	r.Events.Eventf(e.regarding, e.related, e.eventType, e.reason, "Report", "%s", e.message)
}

func repaired(instance *v1alpha1.WindowsInstance, node *corev1.Node, message string) conditionEvent {
	return conditionEvent{instance, node, corev1.EventTypeNormal, "DriftRepaired",
		"The host of Node " + node.Name + " differed from its NodeSpec. " + message}
}

func drifted(instance *v1alpha1.WindowsInstance, node *corev1.Node, message string) conditionEvent {
	return conditionEvent{instance, node, corev1.EventTypeWarning, "HostDrifted",
		"The host of Node " + node.Name + " differs from its NodeSpec: " + message}
}
