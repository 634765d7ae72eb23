package replacement

import (
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

const configuredOtherwise = "The host was configured with an SSH key other than the current key of Secret cloud-private-key"

// replacementReason describes why a Machine is replaced, given the version of its Node.
func (r *Reconciler) replacementReason(cause v1alpha1.DisruptionCause, version string) string {
	if cause == v1alpha1.CauseUpgrade {
		return fmt.Sprintf("The host was configured by version %s of the operator and must be upgraded to version %s",
			version, r.Version)
	}
	return configuredOtherwise
}

// machineReplaced returns two events: one for the Machine, which is about to be deleted, and one for the instance.
func (r *Reconciler) machineReplaced(cause v1alpha1.DisruptionCause, machine *machinev1beta1.Machine,
	instance *v1alpha1.WindowsInstance, version string) []recorder.Event {
	message := r.replacementReason(cause, version) + ": Machine " + machine.Name +
		" is deleted after its node is drained, and its MachineSet creates a replacement."
	return []recorder.Event{
		recorder.Normal(machine, instance, "MachineReplaced", "DeleteMachine", message),
		recorder.Normal(instance, machine, "MachineReplaced", "DeleteMachine", message),
	}
}

// replacementPending is never a warning: waiting for a disruption slot is normal. R-149
//
// The action contains the reason for the wait. client-go treats events with the same type, reason and action about
// the same versions of the same objects as one event: it increments the count and drops the later note.
func (r *Reconciler) replacementPending(cause v1alpha1.DisruptionCause, machine *machinev1beta1.Machine,
	instance *v1alpha1.WindowsInstance, version, reason, why string) recorder.Event {
	return recorder.Normal(instance, machine, "ReplacementPending", "DeleteMachine"+reason,
		r.replacementReason(cause, version)+". Machine "+machine.Name+" waits for its replacement: "+why)
}

// deletionRejected reports that the API server refuses to delete a Machine. The action distinguishes this event from
// machineNotReplaced.
func (r *Reconciler) deletionRejected(cause v1alpha1.DisruptionCause, machine *machinev1beta1.Machine,
	instance *v1alpha1.WindowsInstance, version, why string) recorder.Event {
	return recorder.Warning(machine, instance, "MachineNotReplaced", "DeleteMachineRefused", r.replacementReason(cause, version)+
		". The API server rejects the deletion of Machine "+machine.Name+"; its node stays in service, and the operator retries: "+why)
}

// replacementPaused reports that a Machine waits because a user has paused it.
func replacementPaused(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance, why string) recorder.Event {
	return recorder.Normal(instance, machine, "ReplacementPending", "DeleteMachine",
		"Machine "+machine.Name+" waits for its replacement: "+why)
}

func machineNotReplaced(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance, why string) recorder.Event {
	return recorder.Warning(machine, instance, "MachineNotReplaced", "DeleteMachine",
		configuredOtherwise+". The operator does not replace Machine "+machine.Name+": "+why)
}
