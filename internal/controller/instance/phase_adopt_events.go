package instance

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func nodeTakenOver(instance *v1alpha1.WindowsInstance, node *corev1.Node) instanceEvent {
	from := node.Annotations[v1alpha1.AnnotationVersion]
	if from != "" {
		from = " (" + from + ")"
	}
	return instanceEvent{instance, node, corev1.EventTypeNormal, "NodeTakenOver", "TakeOver",
		"Node " + node.Name + ", which an older version of the operator" + from + " has configured, belongs to this instance from now on. It goes on as it is until its turn comes to be brought up to date."}
}

func hostKeyImported(instance *v1alpha1.WindowsInstance) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeNormal, "HostKeyPinned", "TakeOver",
		"The host key " + instance.Status.HostKey.Fingerprint + ", which an older version of the operator has noted for " + instance.Spec.Address + ", is pinned."}
}
