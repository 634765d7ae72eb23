package instance

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// instanceEvent is one Kubernetes event on a WindowsInstance, made by the constructors below and nowhere else.
type instanceEvent struct {
	regarding                 *v1alpha1.WindowsInstance
	related                   runtime.Object
	eventType, reason, action string
	message                   string
}

func (r *Reconciler) emit(e instanceEvent) {
	r.Events.Eventf(e.regarding, e.related, e.eventType, e.reason, e.action, "%s", e.message)
}

// stopped tells what keeps an instance from going on.
func stopped(instance *v1alpha1.WindowsInstance, o *obstacle) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeWarning, o.reason, o.phase, sentence(o.message) + " " + o.next}
}

// sentence ends a text that another one follows.
func sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

func hostKeyPinned(instance *v1alpha1.WindowsInstance, first bool) instanceEvent {
	message := "The host's key " + instance.Status.HostKey.Fingerprint + " was accepted as asked, and is pinned from now on."
	if first {
		message = "First contact with " + instance.Spec.Address + ": its host key " + instance.Status.HostKey.Fingerprint + " is pinned from now on."
	}
	return instanceEvent{instance, nil, corev1.EventTypeNormal, "HostKeyPinned", "Connect", message}
}

func hostKeyReused(instance *v1alpha1.WindowsInstance, reuse string) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeWarning, "HostKeyReused", "Connect", "The host answers with its pinned key." + reuse}
}

func hostRestarts(instance *v1alpha1.WindowsInstance) instanceEvent {
	message := "The host restarts to put Windows features or its name in force."
	if instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
		message = "The host restarts to take back Windows features or its name."
	}
	return instanceEvent{instance, nil, corev1.EventTypeNormal, "HostRestarts", "Reboot", message}
}

func hostRestarted(instance *v1alpha1.WindowsInstance) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeNormal, "HostRestarted", "Reboot", "The host is back with a new boot id."}
}

func certificateIssued(instance *v1alpha1.WindowsInstance, identity nodespec.Identity) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeNormal, "CertificateIssued", "Sign",
		"The certificate of " + identity.Service() + " for " + identity.CommonName + " was signed for the request that came over the pinned connection."}
}

func nodeJoined(instance *v1alpha1.WindowsInstance, node *corev1.Node) instanceEvent {
	return instanceEvent{instance, node, corev1.EventTypeNormal, "NodeJoined", "Join",
		"Node " + node.Name + " is registered. It takes pods once it was checked to work."}
}

func nodeReady(instance *v1alpha1.WindowsInstance, node *corev1.Node, after time.Duration) instanceEvent {
	return instanceEvent{instance, node, corev1.EventTypeNormal, "NodeReady", "Release",
		"Node " + node.Name + " passed all checks and takes pods, " + after.Round(time.Second).String() + " after the host was listed."}
}

func nodeDrains(instance *v1alpha1.WindowsInstance, node *corev1.Node, cause v1alpha1.DisruptionCause) instanceEvent {
	return instanceEvent{instance, node, corev1.EventTypeNormal, "NodeDrains", "Drain", "Pods are moved away from Node " + node.Name + ". Cause: " + string(cause) + "."}
}

func drainGivenUp(instance *v1alpha1.WindowsInstance, node *corev1.Node, message string) instanceEvent {
	return instanceEvent{instance, node, corev1.EventTypeWarning, v1alpha1.ReasonDrainTimedOut, "Drain", message}
}

func changeHasFailed(instance *v1alpha1.WindowsInstance, node *corev1.Node, o *obstacle) instanceEvent {
	return instanceEvent{instance, node, corev1.EventTypeWarning, v1alpha1.ReasonChangeFailed, "Change",
		"The change of Node " + node.Name + " has failed, and its host is brought back to what it was before. " + sentence(o.reason+": "+o.message)}
}

func rolledBack(instance *v1alpha1.WindowsInstance, node *corev1.Node) instanceEvent {
	return instanceEvent{instance, node, corev1.EventTypeNormal, "RolledBack", "Change", "The host of Node " + node.Name + " is again what it was before the change, and takes pods."}
}

func rebootBegins(instance *v1alpha1.WindowsInstance, node *corev1.Node) instanceEvent {
	return instanceEvent{instance, node, corev1.EventTypeNormal, "HostRestarts", "Reboot",
		"The host restarts, as the annotation " + v1alpha1.AnnotationRebootRequired + " of Node " + node.Name + " asks."}
}

func hostGivenBack(instance *v1alpha1.WindowsInstance) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeNormal, "HostGivenBack", "Remove", "The host is as it was before it became a node."}
}

func hostLeftBehind(instance *v1alpha1.WindowsInstance) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeWarning, "HostLeftBehind", "Remove",
		"As asked, the node is removed without its host " + instance.Spec.Address + `. If the host still exists, it keeps C:\k, its services (description "OpenShift managed"), ` +
			`C:\var\log, C:\var\lib\kubelet, C:\ProgramData\containerd, its firewall rules and HNS networks, and the Containers feature.`}
}

func nodeLost(instance *v1alpha1.WindowsInstance) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeNormal, "NodeLost", "Join",
		"Node " + instance.Status.NodeRef.Name + " was deleted while its host is still listed: the kubelet is restarted to register it again."}
}

func logsPortClosed(instance *v1alpha1.WindowsInstance, address string, err error) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeWarning, "LogsPortClosed", "Verify",
		"The kubelet does not answer at " + address + " (" + err.Error() + "): oc logs and oc exec will not reach the node's pods until that TCP port is open."}
}

func adviceGiven(instance *v1alpha1.WindowsInstance, failed string) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeWarning, "AdvisoryCheckFailed", "Verify",
		"The node takes pods, but this check failed: " + failed}
}

func hostStays(instance, other *v1alpha1.WindowsInstance) instanceEvent {
	return instanceEvent{instance, other, corev1.EventTypeNormal, "HostStays", "Remove",
		"The host is that of WindowsInstance " + other.Name + " too: it stays as it is, and only this entry goes."}
}

func keyAuthorized(instance *v1alpha1.WindowsInstance, fingerprint string) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeNormal, "KeyAuthorized", "Connect",
		"The host refused the present key and accepted the one before: the present one, " + fingerprint + ", was added to those that the host accepts."}
}

func keyAdopted(instance *v1alpha1.WindowsInstance, fingerprint string) instanceEvent {
	return instanceEvent{instance, nil, corev1.EventTypeNormal, "KeyAdopted", "Connect", "The host was reached with the present key, " + fingerprint + "."}
}

func nodeDeleted(instance *v1alpha1.WindowsInstance, node *corev1.Node) instanceEvent {
	return instanceEvent{instance, node, corev1.EventTypeNormal, "NodeDeleted", "Remove", "Node " + node.Name + " was deleted."}
}
