package machine

import (
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

// reportOnce emits an event about a Machine or a MachineSet, unless the previous reconcile had the same message.
func (r *Reconciler) reportOnce(about types.UID, e recorder.Event) {
	if r.reported.IsNew(about, e.Message) {
		recorder.Emit(r.Events, e)
	}
}

// reportMetadata reports once that labels or taints of a Machine are left out.
func (r *Reconciler) reportMetadata(machine *machinev1beta1.Machine) {
	v := newMachineView(machine)
	if state, _ := v.desiredState(); state != v1alpha1.DesiredStateNode {
		return
	}
	if _, faults := v.nodeMetadata(); len(faults) > 0 {
		r.reportOnce(machine.UID+"/metadata", metadataInvalid(machine, faults))
	}
}

func metadataInvalid(machine *machinev1beta1.Machine, faults []string) recorder.Event {
	return recorder.Warning(machine, nil, "NodeMetadataInvalid", "CreateInstance",
		"A Node cannot have some labels or taints of this Machine, so the operator omits them. Correct spec.metadata.labels and spec.taints of the Machine and its MachineSet. "+
			strings.Join(faults, "; "))
}

func instanceCreated(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Normal(machine, instance, "WindowsInstanceCreated", "CreateInstance",
		"The host at "+instance.Spec.Address+" becomes a node. For its progress, see WindowsInstance "+instance.Name+
			" in namespace "+instance.Namespace+".")
}

func hostUnmanaged(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance) recorder.Event {
	why := "The Machine is being deleted."
	switch instance.Spec.DesiredStateReason {
	case v1alpha1.ReasonMachineFailed:
		why = "The Machine has failed."
	case v1alpha1.ReasonMachineIgnored:
		why = "The Machine has the ignore label, or no longer has the label of a Windows Machine."
	}
	return recorder.Normal(instance, machine, instance.Spec.DesiredStateReason, "StopManaging",
		why+" The operator does not change its host and Node.")
}

func machineManaged(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Normal(instance, machine, "MachineManaged", "Manage",
		"The operator manages the host of the Machine again.")
}

// machineNotFound is reported on the remaining instance, because the Machine no longer exists.
func machineNotFound(instance *v1alpha1.WindowsInstance) recorder.Event {
	reference := instance.Spec.Source.Machine
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: reference.Namespace, Name: reference.Name,
		UID: reference.UID}}
	return recorder.Normal(instance, machine, "MachineNotFound", "RequestRemoval",
		"Machine "+reference.Namespace+"/"+reference.Name+", UID "+string(reference.UID)+
			", no longer exists: the operator removes the remaining objects of its host from the cluster.")
}

func instanceNameConflict(machine *machinev1beta1.Machine, namespace string) recorder.Event {
	return recorder.Warning(machine, nil, "InstanceNameConflict", "CreateInstance",
		"The host does not become a node: WindowsInstance "+machine.Name+" in namespace "+namespace+
			" belongs to a host in ConfigMap windows-instances. Remove that host from the ConfigMap, or delete this Machine, so that its replacement gets another name.")
}

func strategyInvalid(set *machinev1beta1.MachineSet, byDefault v1alpha1.UpgradeStrategy) recorder.Event {
	return recorder.Warning(set, nil, "UpgradeStrategyInvalid", "ChooseUpgradeStrategy",
		fmt.Sprintf("Annotation %s is %.64q, but must be %s or %s. The Machines are upgraded like those of MachineSets without the annotation: %s.",
			v1alpha1.AnnotationUpgradeStrategy, set.Annotations[v1alpha1.AnnotationUpgradeStrategy], v1alpha1.UpgradeReplace,
			v1alpha1.UpgradeInPlace, byDefault))
}

func instanceRejected(machine *machinev1beta1.Machine, err error) recorder.Event {
	return recorder.Warning(machine, nil, "WindowsInstanceRejected", "CreateInstance",
		"The API server rejects the WindowsInstance of this Machine. Correct spec.metadata.labels and spec.taints of the Machine. "+
			err.Error())
}
