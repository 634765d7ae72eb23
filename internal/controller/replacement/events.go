package replacement

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// replacementEvent is one Kubernetes event, made by the constructors below and nowhere else.
type replacementEvent struct {
	regarding, related        runtime.Object
	eventType, reason, action string
	message                   string
}

func (r *Reconciler) emit(e replacementEvent) {
	r.Events.Eventf(e.regarding, e.related, e.eventType, e.reason, e.action, "%s", e.message)
}

const configuredOtherwise = "The host was configured with another SSH key than the present one of Secret cloud-private-key"

// replaced tells of it twice: to who looks at the Machine, which is about to go, and to who looks at the instance.
func replaced(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance) []replacementEvent {
	message := configuredOtherwise + ", and was not given that: Machine " + machine.Name + " is deleted, after its node was drained, and its MachineSet makes another one."
	return []replacementEvent{
		{machine, instance, corev1.EventTypeNormal, "MachineReplaced", "DeleteMachine", message},
		{instance, machine, corev1.EventTypeNormal, "MachineReplaced", "DeleteMachine", message},
	}
}

func waits(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance, why string) replacementEvent {
	return replacementEvent{instance, machine, corev1.EventTypeNormal, "ReplacementWaits", "DeleteMachine",
		configuredOtherwise + ". Machine " + machine.Name + " is replaced when its turn comes, one at a time. Now: " + why}
}

func left(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance, why string) replacementEvent {
	return replacementEvent{machine, instance, corev1.EventTypeWarning, "MachineNotReplaced", "DeleteMachine",
		configuredOtherwise + ". The operator does not replace Machine " + machine.Name + ": " + why}
}
