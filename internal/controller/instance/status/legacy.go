package status

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// Events with the reasons and objects of operators before version 12, for alerts and scripts that depend on them.
// Each is recorded in addition to an event about the instance.

// legacyObject returns the Machine or the ConfigMap that lists the host. The instance is the related object of
// each event, because events about one ConfigMap would otherwise be aggregated.
func legacyObject(instance *v1alpha1.WindowsInstance) *corev1.ObjectReference {
	if machine := instance.Spec.Source.Machine; machine != nil {
		return &corev1.ObjectReference{APIVersion: "machine.openshift.io/v1beta1", Kind: "Machine", Namespace: machine.Namespace,
			Name: machine.Name, UID: machine.UID}
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: instance.Namespace, Name: "windows-instances"}
}

// LegacySetupEvent reports that the host became a node.
func LegacySetupEvent(instance *v1alpha1.WindowsInstance) recorder.Event {
	about := legacyObject(instance)
	if instance.Spec.Source.Machine != nil {
		return recorder.Normal(about, instance, "MachineSetup", "Activate", "Machine "+about.Name+" is configured as a node.")
	}
	return recorder.Normal(about, instance, "InstanceSetup", "Activate",
		"The instance with address "+instance.Spec.Address+" is configured as a worker node.")
}

// LegacySetupFailureEvent reports a failure on a host that this version of the operator has not configured yet.
func LegacySetupFailureEvent(instance *v1alpha1.WindowsInstance, o *result.Result) recorder.Event {
	about, failure := legacyObject(instance), "configuration failure: "
	if o.SSHKeyRejected {
		failure = "authentication failure: "
	}
	if instance.Spec.Source.Machine != nil {
		return recorder.Warning(about, instance, "MachineSetupFailure", o.Phase, "Machine "+about.Name+" "+failure+sanitize.Sentence(o.Message))
	}
	return recorder.Warning(about, instance, "InstanceSetupFailure", o.Phase,
		"The instance with address "+instance.Spec.Address+" "+failure+sanitize.Sentence(o.Message))
}

// LegacyTeardownEvent reports that a listed host was restored.
func LegacyTeardownEvent(instance *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Normal(legacyObject(instance), instance, "InstanceTeardown", "Remove",
		"The instance with address "+instance.Spec.Address+" is deconfigured.")
}
