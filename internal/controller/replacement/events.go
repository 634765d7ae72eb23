package replacement

import (
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

const configuredOtherwise = "The host was configured with an SSH key other than the present one of Secret cloud-private-key"

// because says in words why a Machine is replaced whose Node has the version.
func (r *Reconciler) because(cause v1alpha1.DisruptionCause, version string) string {
	if cause == v1alpha1.CauseUpgrade {
		return fmt.Sprintf("The host was configured by version %s of the operator and must be upgraded to version %s",
			version, r.Version)
	}
	return configuredOtherwise
}

// replaced tells of it twice: to who looks at the Machine, which is about to go, and to who looks at the instance.
func (r *Reconciler) replaced(cause v1alpha1.DisruptionCause, machine *machinev1beta1.Machine,
	instance *v1alpha1.WindowsInstance, version string) []recorder.Event {
	message := r.because(cause, version) + ": Machine " + machine.Name +
		" is deleted after its node is drained, and its MachineSet creates another one."
	return []recorder.Event{
		recorder.Normal(machine, instance, "MachineReplaced", "DeleteMachine", message),
		recorder.Normal(instance, machine, "MachineReplaced", "DeleteMachine", message),
	}
}

// waits is never a warning: that a Machine waits for its turn is as it should be. R-149
//
// The action names why the Machine waits. client-go takes two events with the same type, reason and action for one if
// they are about the same versions of the same objects: it counts the first one up and drops the second one's note.
func (r *Reconciler) waits(cause v1alpha1.DisruptionCause, machine *machinev1beta1.Machine,
	instance *v1alpha1.WindowsInstance, version, reason, why string) recorder.Event {
	return recorder.Normal(instance, machine, "ReplacementPending", "DeleteMachine"+reason,
		r.because(cause, version)+". Machine "+machine.Name+" waits to be replaced: "+why)
}

// refused reports that the API server refuses to delete a Machine. The action distinguishes the event from that of left.
func (r *Reconciler) refused(cause v1alpha1.DisruptionCause, machine *machinev1beta1.Machine,
	instance *v1alpha1.WindowsInstance, version, why string) recorder.Event {
	return recorder.Warning(machine, instance, "MachineNotReplaced", "DeleteMachineRefused", r.because(cause, version)+
		". The API server refuses to delete Machine "+machine.Name+"; its node stays in service, and the operator retries: "+why)
}

// paused is about a Machine that waits for as long as a user wants it to.
func paused(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance, why string) recorder.Event {
	return recorder.Normal(instance, machine, "ReplacementPending", "DeleteMachine",
		"Machine "+machine.Name+" must be replaced, but not yet: "+why)
}

func left(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance, why string) recorder.Event {
	return recorder.Warning(machine, instance, "MachineNotReplaced", "DeleteMachine",
		configuredOtherwise+". The operator does not replace Machine "+machine.Name+": "+why)
}
