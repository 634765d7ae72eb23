package machine

import (
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// machineEvent is one Kubernetes event, made by the constructors below and nowhere else.
type machineEvent struct {
	regarding, related        runtime.Object
	eventType, reason, action string
	message                   string
}

func (r *Reconciler) emit(e machineEvent) {
	r.Events.Eventf(e.regarding, e.related, e.eventType, e.reason, e.action, "%s", e.message)
}

// reportOnce tells what is wrong with a Machine or a MachineSet, unless the pass before said the same.
func (r *Reconciler) reportOnce(said map[types.UID]string, about types.UID, e machineEvent) {
	said[about] = e.message
	if r.reported[about] != e.message {
		r.emit(e)
	}
}

func instanceCreated(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance) machineEvent {
	return machineEvent{machine, instance, corev1.EventTypeNormal, "WindowsInstanceCreated", "CreateInstance",
		"The host at " + instance.Spec.Address + " becomes a node. For its progress, see WindowsInstance " + instance.Name +
			" in namespace " + instance.Namespace + "."}
}

func leftAlone(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance) machineEvent {
	why := "The Machine is being deleted."
	switch instance.Spec.DesiredStateReason {
	case v1alpha1.ReasonMachineFailed:
		why = "The Machine has failed."
	case v1alpha1.ReasonMachineIgnored:
		why = "The Machine has the label to be ignored, or no longer has the label of a Windows Machine."
	}
	return machineEvent{instance, machine, corev1.EventTypeNormal, instance.Spec.DesiredStateReason, "LeaveAlone",
		why + " The operator leaves its host and Node alone."}
}

func takenUp(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance) machineEvent {
	return machineEvent{instance, machine, corev1.EventTypeNormal, "MachineTakenUp", "TakeUp",
		"The operator makes the host of the Machine a node again."}
}

// removalRequested is about a Machine that is gone, so it is reported on what is left: the instance.
func removalRequested(instance *v1alpha1.WindowsInstance) machineEvent {
	reference := instance.Spec.Source.Machine
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: reference.Namespace, Name: reference.Name,
		UID: reference.UID}}
	return machineEvent{instance, machine, corev1.EventTypeNormal, "MachineGone", "RequestRemoval",
		"Machine " + reference.Namespace + "/" + reference.Name + ", UID " + string(reference.UID) +
			", is gone, and its host with it: the operator removes what is left of it in the cluster."}
}

func nameTaken(machine *machinev1beta1.Machine, namespace string) machineEvent {
	return machineEvent{machine, nil, corev1.EventTypeWarning, "NameTaken", "CreateInstance",
		"The host does not become a node: WindowsInstance " + machine.Name + " in namespace " + namespace +
			" belongs to a host in ConfigMap windows-instances. Remove that host from the ConfigMap, or delete this Machine, so that its replacement gets another name."}
}

func strategyInvalid(set *machinev1beta1.MachineSet, byDefault v1alpha1.UpgradeStrategy) machineEvent {
	return machineEvent{set, nil, corev1.EventTypeWarning, "UpgradeStrategyInvalid", "ChooseUpgradeStrategy",
		fmt.Sprintf("Annotation %s is %.64q, but must be %s or %s. The Machines are upgraded like those of MachineSets without the annotation: %s.",
			v1alpha1.AnnotationUpgradeStrategy, set.Annotations[v1alpha1.AnnotationUpgradeStrategy], v1alpha1.UpgradeReplace,
			v1alpha1.UpgradeInPlace, byDefault)}
}

func instanceRefused(machine *machinev1beta1.Machine, err error) machineEvent {
	return machineEvent{machine, nil, corev1.EventTypeWarning, "WindowsInstanceRefused", "CreateInstance",
		"The API server rejects the WindowsInstance of this Machine. Correct spec.metadata.labels and spec.taints of the Machine. " +
			err.Error()}
}
