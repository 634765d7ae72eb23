package status

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// Recorder records the events of a reconcile, after its status was written.
type Recorder struct {
	to      events.EventRecorder
	pending *[]recorder.Event
}

// NewRecorder returns the recorder of one reconcile.
func NewRecorder(to events.EventRecorder) Recorder { return Recorder{to, &[]recorder.Event{}} }

// Emit records an event when Flush is called.
func (r Recorder) Emit(e recorder.Event) { *r.pending = append(*r.pending, e) }

// Flush records the events.
func (r Recorder) Flush() {
	for _, e := range *r.pending {
		recorder.Emit(r.to, e)
	}
	*r.pending = nil
}

// StoppedEvent reports the result that blocks an instance.
func StoppedEvent(instance *v1alpha1.WindowsInstance, o *result.Result) recorder.Event {
	return recorder.Warning(instance, nil, o.Reason, o.Phase, sanitize.Sentence(o.Message)+" "+o.NextAction)
}

// HostKeyPinnedEvent reports the pinned host key, at the first contact or after acceptance by an administrator.
func HostKeyPinnedEvent(instance *v1alpha1.WindowsInstance, first bool) recorder.Event {
	message := "The host's key " + instance.Status.HostKey.Fingerprint +
		" was accepted as requested, and is now pinned."
	if first {
		message = "First contact with " + instance.Spec.Address + ": its host key " + instance.Status.HostKey.Fingerprint +
			" is now pinned."
	}
	return recorder.Normal(instance, nil, "HostKeyPinned", "Connect", message)
}

// HostKeyReusedEvent reports that other hosts have the same host key.
func HostKeyReusedEvent(instance *v1alpha1.WindowsInstance, reuse string) recorder.Event {
	return recorder.Warning(instance, nil, "HostKeyReused", "Connect",
		"The host answers with its pinned key."+reuse)
}

// HostRebootingEvent reports a restart of the host for Windows features or the host name.
func HostRebootingEvent(instance *v1alpha1.WindowsInstance) recorder.Event {
	message := "The host restarts so that changes to its Windows features or its name take effect."
	if instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
		message = "The host restarts to undo changes to its Windows features or its name."
	}
	return recorder.Normal(instance, nil, "HostRebooting", "Reboot", message)
}

// NodeReadyEvent reports that the node accepts pods, and the time needed for that.
func NodeReadyEvent(instance *v1alpha1.WindowsInstance, node *corev1.Node, after time.Duration) recorder.Event {
	return recorder.Normal(instance, node, "NodeReady", "Activate",
		"Node "+node.Name+" passed all checks and accepts pods, "+after.Round(time.Second).String()+
			" after the host was listed.")
}

// DrainStartedEvent reports that the node is drained, and the cause.
func DrainStartedEvent(instance *v1alpha1.WindowsInstance, node *corev1.Node, cause v1alpha1.DisruptionCause) recorder.Event {
	return recorder.Normal(instance, node, "DrainStarted", "Drain", "Draining Node "+
		node.Name+". Cause: "+string(cause)+".")
}

// DrainTimedOutEvent reports that the drain timed out.
func DrainTimedOutEvent(instance *v1alpha1.WindowsInstance, node *corev1.Node, message string) recorder.Event {
	return recorder.Warning(instance, node, v1alpha1.ReasonDrainTimedOut, "Drain", message)
}

// ChangeFailedEvent reports that a change of a node in service has failed.
func ChangeFailedEvent(instance *v1alpha1.WindowsInstance, node *corev1.Node, o *result.Result) recorder.Event {
	return recorder.Warning(instance, node, v1alpha1.ReasonChangeFailed, "Change",
		"The change of Node "+node.Name+" has failed. If a rollback is possible, the operator rolls the host back; otherwise, the operator retries the change. "+
			sanitize.Sentence(o.Reason+": "+o.Message))
}

// RollbackUnavailableEvent reports, before the change of a node in service, that its host cannot be rolled back
// if the change fails.
func RollbackUnavailableEvent(instance *v1alpha1.WindowsInstance, why string) recorder.Event {
	return recorder.Warning(instance, nil, "RollbackUnavailable", "Change",
		"If the next change of this node fails, its host cannot be rolled back: "+sanitize.Sentence(why)+
			" The operator then retries the change until it succeeds. To prevent the change, set paused: true in the WindowsDisruptionPolicy.")
}

// RolledBackEvent reports that the host was rolled back to its state before the change.
func RolledBackEvent(instance *v1alpha1.WindowsInstance, node *corev1.Node) recorder.Event {
	return recorder.Normal(instance, node, "RolledBack", "Change", "The host of Node "+node.Name+
		" was rolled back to its state before the change. The Node accepts pods again.")
}

// RebootRequestedEvent reports that the host restarts because of the annotation on its Node.
func RebootRequestedEvent(instance *v1alpha1.WindowsInstance, node *corev1.Node) recorder.Event {
	return recorder.Normal(instance, node, "HostRebooting", "Reboot",
		"The host restarts, as annotation "+v1alpha1.AnnotationRebootRequired+" of Node "+node.Name+" requests.")
}

// HostRestoredEvent reports that the host is restored to its original state.
func HostRestoredEvent(instance *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Normal(instance, nil, "HostRestored", "Remove",
		"The host was restored to its original state.")
}

// HostNotRestoredEvent reports changes of a later release on the host that this release could not restore.
func HostNotRestoredEvent(instance *v1alpha1.WindowsInstance, entries []string) recorder.Event {
	return recorder.Warning(instance, nil, "HostNotRestored", "Remove",
		"A later release of the operator has changed the host. This release cannot restore "+
			strings.Join(entries, ", ")+".")
}

// HostNotCleanedUpEvent reports that the node was removed without restoring its host.
func HostNotCleanedUpEvent(instance *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Warning(instance, nil, "HostNotCleanedUp", "Remove",
		"As annotation "+v1alpha1.AnnotationForgetHost+" requests, the node is removed, but the operator does not restore its host "+instance.Spec.Address+
			`. If the host still exists, it keeps C:\k, its services (description "OpenShift managed"), `+
			`C:\var\log, C:\var\lib\kubelet, C:\ProgramData\containerd, its firewall rules and HNS networks, and the Containers feature.`)
}

// NodeDeletedExternallyEvent reports that the Node was deleted while its host is listed.
func NodeDeletedExternallyEvent(instance *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Normal(instance, nil, "NodeDeletedExternally", "Join",
		"Node "+instance.Status.NodeRef.Name+
			" was deleted while its host is still listed: the kubelet is restarted to register it again.")
}

// NodeRegistrationTimedOutEvent reports that the Node does not exist although the kubelet has run for some time.
func NodeRegistrationTimedOutEvent(instance *v1alpha1.WindowsInstance, age time.Duration) recorder.Event {
	return recorder.Normal(instance, nil, "NodeRegistrationTimedOut", "Join",
		"Node "+instance.Status.NodeRef.Name+" does not exist, although the kubelet has run for "+age.String()+
			": it was not registered, or was deleted before the operator saw it. The kubelet is restarted to register it again.")
}

// NodeDriftRevertedEvent reports the reverted fields on the Node. again is true if another writer keeps changing
// them.
func NodeDriftRevertedEvent(instance *v1alpha1.WindowsInstance, node *corev1.Node, changed []string, again bool) recorder.Event {
	message := "Another client changed fields that the operator owns on Node " + node.Name + "; the operator restored them: " +
		strings.Join(changed, ", ") + "."
	if !again {
		return recorder.Normal(instance, node, "NodeDriftReverted", "RevertDrift", message)
	}
	return recorder.Warning(instance, node, "NodeDriftReverted", "RevertDrift", message+
		" Because the client keeps changing the fields, the operator restores them less often. Identify the client in the audit log of the API server, and stop it.")
}

// KubeletPortUnreachableEvent reports that the API server may not reach the kubelet.
func KubeletPortUnreachableEvent(instance *v1alpha1.WindowsInstance, address string, err error) recorder.Event {
	return recorder.Warning(instance, nil, "KubeletPortUnreachable", "Verify",
		"The kubelet does not answer at "+address+" ("+err.Error()+
			"): oc logs and oc exec will not reach the node's pods until that TCP port is open.")
}

// AdvisoryCheckFailedEvent reports that an advisory check has failed.
func AdvisoryCheckFailedEvent(instance *v1alpha1.WindowsInstance, failed string) recorder.Event {
	return recorder.Warning(instance, nil, "AdvisoryCheckFailed", "Verify",
		"The node accepts pods, but this check failed: "+failed)
}

// ClockSkewEvent reports that the clock of a node's host is wrong.
func ClockSkewEvent(instance *v1alpha1.WindowsInstance, clock string) recorder.Event {
	return recorder.Warning(instance, nil, "ClockSkew", "Verify", "The node accepts pods, but "+clock)
}

// HostSharedEvent reports that the host also belongs to another instance.
func HostSharedEvent(instance, other *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Normal(instance, other, "HostShared", "Remove",
		"The host also belongs to WindowsInstance "+other.Name+". The host is not changed; only this WindowsInstance is deleted.")
}

// SSHKeyAuthorizedEvent reports that the current SSH key was added on the host with the previous one.
func SSHKeyAuthorizedEvent(instance *v1alpha1.WindowsInstance, fingerprint string) recorder.Event {
	return recorder.Normal(instance, nil, "SSHKeyAuthorized", "Connect",
		"The host rejected the current key and accepted the previous key. The operator added the current key, "+fingerprint+
			", to the keys that the host accepts.")
}

// SSHKeyUpdatedEvent reports that the host was reached with the current SSH key.
func SSHKeyUpdatedEvent(instance *v1alpha1.WindowsInstance, fingerprint string) recorder.Event {
	return recorder.Normal(instance, nil, "SSHKeyUpdated", "Connect",
		"The host accepts the current key, "+fingerprint+".")
}

// NodeDeletedEvent reports that the Node was deleted.
func NodeDeletedEvent(instance *v1alpha1.WindowsInstance, node *corev1.Node) recorder.Event {
	return recorder.Normal(instance, node, "NodeDeleted", "Remove", "Node "+node.Name+" was deleted.")
}

// NodeAdoptedEvent reports that the instance has adopted a Node of a legacy operator.
func NodeAdoptedEvent(instance *v1alpha1.WindowsInstance, node *corev1.Node) recorder.Event {
	from := node.Annotations[v1alpha1.AnnotationVersion]
	if from != "" {
		from = " (" + from + ")"
	}
	return recorder.Normal(instance, node, "NodeAdopted", "Adopt",
		"Node "+node.Name+", configured by the legacy operator"+from+
			", now belongs to this instance. It is upgraded when the WindowsDisruptionPolicy allows it.")
}

// HostKeyImportedEvent reports that a host key recorded by a legacy operator is pinned.
func HostKeyImportedEvent(instance *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Normal(instance, nil, "HostKeyPinned", "Adopt",
		"The host key "+instance.Status.HostKey.Fingerprint+", which the legacy operator recorded for "+
			instance.Spec.Address+", is now pinned.")
}
