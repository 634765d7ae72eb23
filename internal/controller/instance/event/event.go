// Package event defines the Kubernetes events about instances, each made by a constructor of its own.
package event

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/text"
)

// Recorder records events.
type Recorder struct{ events.EventRecorder }

// Emit records an event.
func (r Recorder) Emit(e recorder.Event) { recorder.Emit(r, e) }

// Stopped says what keeps an instance from progressing.
func Stopped(instance *v1alpha1.WindowsInstance, o *obstacle.Obstacle) recorder.Event {
	return recorder.Warning(instance, nil, o.Reason, o.Phase, text.Sentence(o.Message)+" "+o.Next)
}

// HostKeyPinned says which host key is pinned, at the first contact or because an administrator has accepted it.
func HostKeyPinned(instance *v1alpha1.WindowsInstance, first bool) recorder.Event {
	message := "The host's key " + instance.Status.HostKey.Fingerprint +
		" was accepted as asked, and is pinned from now on."
	if first {
		message = "First contact with " + instance.Spec.Address + ": its host key " + instance.Status.HostKey.Fingerprint +
			" is pinned from now on."
	}
	return recorder.Normal(instance, nil, "HostKeyPinned", "Connect", message)
}

// HostKeyReused says that other hosts have the same host key.
func HostKeyReused(instance *v1alpha1.WindowsInstance, reuse string) recorder.Event {
	return recorder.Warning(instance, nil, "HostKeyReused", "Connect",
		"The host answers with its pinned key."+reuse)
}

// HostRestarts says that the host restarts for Windows features or its name.
func HostRestarts(instance *v1alpha1.WindowsInstance) recorder.Event {
	message := "The host restarts so that changes to its Windows features or its name take effect."
	if instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
		message = "The host restarts to undo changes to its Windows features or its name."
	}
	return recorder.Normal(instance, nil, "HostRestarts", "Reboot", message)
}

// NodeReady says that the node takes pods, and how long that has taken.
func NodeReady(instance *v1alpha1.WindowsInstance, node *corev1.Node, after time.Duration) recorder.Event {
	return recorder.Normal(instance, node, "NodeReady", "Release",
		"Node "+node.Name+" passed all checks and takes pods, "+after.Round(time.Second).String()+
			" after the host was listed.")
}

// NodeDrains says that pods are moved away from the node, and why.
func NodeDrains(instance *v1alpha1.WindowsInstance, node *corev1.Node, cause v1alpha1.DisruptionCause) recorder.Event {
	return recorder.Normal(instance, node, "NodeDrains", "Drain", "Pods are moved away from Node "+
		node.Name+". Cause: "+string(cause)+".")
}

// DrainGivenUp says that the pods did not leave in time.
func DrainGivenUp(instance *v1alpha1.WindowsInstance, node *corev1.Node, message string) recorder.Event {
	return recorder.Warning(instance, node, v1alpha1.ReasonDrainTimedOut, "Drain", message)
}

// ChangeHasFailed says that a change of a node in service has failed.
func ChangeHasFailed(instance *v1alpha1.WindowsInstance, node *corev1.Node, o *obstacle.Obstacle) recorder.Event {
	return recorder.Warning(instance, node, v1alpha1.ReasonChangeFailed, "Change",
		"The change of Node "+node.Name+" has failed. If the host can be rolled back, the operator does so now; otherwise it tries the change again. "+
			text.Sentence(o.Reason+": "+o.Message))
}

// NoFallback says, before a node in service is changed, that its host cannot be rolled back if the change fails.
func NoFallback(instance *v1alpha1.WindowsInstance, why string) recorder.Event {
	return recorder.Warning(instance, nil, "NoFallback", "Change",
		"If the next change of this node fails, its host cannot be rolled back: "+text.Sentence(why)+
			" The operator then tries the change again until it succeeds. To keep the host as it is, set paused: true in the policy.")
}

// RolledBack says that the host is back in its state before the change.
func RolledBack(instance *v1alpha1.WindowsInstance, node *corev1.Node) recorder.Event {
	return recorder.Normal(instance, node, "RolledBack", "Change", "The host of Node "+node.Name+
		" was rolled back to its state before the change. The Node takes pods again.")
}

// RebootBegins says that the host restarts because of the annotation on its Node.
func RebootBegins(instance *v1alpha1.WindowsInstance, node *corev1.Node) recorder.Event {
	return recorder.Normal(instance, node, "HostRestarts", "Reboot",
		"The host restarts, as the annotation "+v1alpha1.AnnotationRebootRequired+" of Node "+node.Name+" asks.")
}

// HostGivenBack says that the host is as it was before it became a node.
func HostGivenBack(instance *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Normal(instance, nil, "HostGivenBack", "Remove",
		"The host is as it was before it became a node.")
}

// HostNotRestored says what a later release has changed on the host and this one could not restore.
func HostNotRestored(instance *v1alpha1.WindowsInstance, entries []string) recorder.Event {
	return recorder.Warning(instance, nil, "HostNotRestored", "Remove",
		"A later release of the operator has changed the host. This release cannot restore what that release noted as "+
			strings.Join(entries, ", ")+".")
}

// HostLeftBehind says that the node was removed without its host.
func HostLeftBehind(instance *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Warning(instance, nil, "HostLeftBehind", "Remove",
		"As annotation "+v1alpha1.AnnotationForgetHost+" requests, the node is removed, but the operator does not restore its host "+instance.Spec.Address+
			`. If the host still exists, it keeps C:\k, its services (description "OpenShift managed"), `+
			`C:\var\log, C:\var\lib\kubelet, C:\ProgramData\containerd, its firewall rules and HNS networks, and the Containers feature.`)
}

// NodeLost says that the Node was deleted while its host is listed.
func NodeLost(instance *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Normal(instance, nil, "NodeLost", "Join",
		"Node "+instance.Status.NodeRef.Name+
			" was deleted while its host is still listed: the kubelet is restarted to register it again.")
}

// NodeMissing reports that the Node does not exist, although the kubelet has run for some time.
func NodeMissing(instance *v1alpha1.WindowsInstance, age time.Duration) recorder.Event {
	return recorder.Normal(instance, nil, "NodeMissing", "Join",
		"Node "+instance.Status.NodeRef.Name+" does not exist, although the kubelet has run for "+age.String()+
			": it was not registered, or was deleted before the operator saw it. The kubelet is restarted to register it again.")
}

// NodePutRight says what the operator has put back on the Node. again is true when another writer keeps changing it.
func NodePutRight(instance *v1alpha1.WindowsInstance, node *corev1.Node, changed []string, again bool) recorder.Event {
	message := "Another client changed fields that the operator owns on Node " + node.Name + "; the operator restored them: " +
		strings.Join(changed, ", ") + "."
	if !again {
		return recorder.Normal(instance, node, "NodePutRight", "Keep", message)
	}
	return recorder.Warning(instance, node, "NodePutRight", "Keep", message+
		" This happens again and again, so the operator restores them less and less often. Find the other client in the audit log of the API server, and stop it.")
}

// LogsPortClosed says that the API server may not reach the kubelet.
func LogsPortClosed(instance *v1alpha1.WindowsInstance, address string, err error) recorder.Event {
	return recorder.Warning(instance, nil, "LogsPortClosed", "Verify",
		"The kubelet does not answer at "+address+" ("+err.Error()+
			"): oc logs and oc exec will not reach the node's pods until that TCP port is open.")
}

// AdviceGiven says that an advisory check has failed.
func AdviceGiven(instance *v1alpha1.WindowsInstance, failed string) recorder.Event {
	return recorder.Warning(instance, nil, "AdvisoryCheckFailed", "Verify",
		"The node takes pods, but this check failed: "+failed)
}

// ClockOff says that the clock of a node's host is wrong.
func ClockOff(instance *v1alpha1.WindowsInstance, clock string) recorder.Event {
	return recorder.Warning(instance, nil, "ClockSkew", "Verify", "The node takes pods, but "+clock)
}

// HostStays says that the host belongs to another instance too.
func HostStays(instance, other *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Normal(instance, other, "HostStays", "Remove",
		"The host also belongs to WindowsInstance "+other.Name+". The host stays as it is; only this WindowsInstance is deleted.")
}

// KeyAuthorized says that the present SSH key was added on the host with the previous one.
func KeyAuthorized(instance *v1alpha1.WindowsInstance, fingerprint string) recorder.Event {
	return recorder.Normal(instance, nil, "KeyAuthorized", "Connect",
		"The host refused the present key and accepted the previous one. The present key, "+fingerprint+
			", was added to the keys that the host accepts.")
}

// KeyAdopted says that the host was reached with the present SSH key.
func KeyAdopted(instance *v1alpha1.WindowsInstance, fingerprint string) recorder.Event {
	return recorder.Normal(instance, nil, "KeyAdopted", "Connect",
		"The host was reached with the present key, "+fingerprint+".")
}

// NodeDeleted says that the Node was deleted.
func NodeDeleted(instance *v1alpha1.WindowsInstance, node *corev1.Node) recorder.Event {
	return recorder.Normal(instance, node, "NodeDeleted", "Remove", "Node "+node.Name+" was deleted.")
}

// NodeTakenOver says that a Node of an older version of the operator belongs to the instance.
func NodeTakenOver(instance *v1alpha1.WindowsInstance, node *corev1.Node) recorder.Event {
	from := node.Annotations[v1alpha1.AnnotationVersion]
	if from != "" {
		from = " (" + from + ")"
	}
	return recorder.Normal(instance, node, "NodeTakenOver", "TakeOver",
		"Node "+node.Name+", which an older version of the operator"+from+
			" has configured, belongs to this instance from now on. It stays as it is until its turn to be upgraded comes.")
}

// HostKeyImported says that a host key of an older version of the operator is pinned.
func HostKeyImported(instance *v1alpha1.WindowsInstance) recorder.Event {
	return recorder.Normal(instance, nil, "HostKeyPinned", "TakeOver",
		"The host key "+instance.Status.HostKey.Fingerprint+", which an older version of the operator has noted for "+
			instance.Spec.Address+", is pinned.")
}
