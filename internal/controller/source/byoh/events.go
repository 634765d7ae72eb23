package byoh

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// event is one Kubernetes event, made by the constructors below and nowhere else.
type event struct {
	regarding, related        runtime.Object
	eventType, reason, action string
	message                   string
}

func (r *Reconciler) emit(e event) {
	r.Events.Eventf(e.regarding, e.related, e.eventType, e.reason, e.action, "%s", e.message)
}

func instanceCreated(configMap *corev1.ConfigMap, instance *v1alpha1.WindowsInstance) event {
	return event{instance, configMap, corev1.EventTypeNormal, "Listed", "CreateInstance",
		"Key " + instance.Spec.Source.ConfigMapKey + " of ConfigMap " + ConfigMapName + " lists this host: it will become a node."}
}

func removalRequested(configMap *corev1.ConfigMap, instance *v1alpha1.WindowsInstance) event {
	return event{instance, configMap, corev1.EventTypeNormal, "Unlisted", "RequestRemoval",
		"ConfigMap " + ConfigMapName + " no longer lists this host: its node will be drained and removed, and the host given back as it was."}
}

func entryInvalid(configMap *corev1.ConfigMap, fault fault) event {
	return event{configMap, nil, corev1.EventTypeWarning, "InvalidEntry", "ParseEntry",
		"Key " + fault.key + ": " + fault.err.Error() + ". Other entries are not affected."}
}
