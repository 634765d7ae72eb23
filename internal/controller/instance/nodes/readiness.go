package nodes

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// notReadyGrace is how long a node may be NotReady before the operator looks at its host: a reboot by hand or a
// restarted kubelet mends itself, and so does most of what the agent repairs.
const notReadyGrace = 2 * time.Minute

const (
	// readyLimit is how long a node that passed all checks may take to report Ready before it counts as a failure.
	readyLimit = 2 * time.Minute
	// readyPoll is how soon a Node is looked at again whose kubelet has not reported since it began: the Node's events do
	// not tell of a report that says the same as the one before.
	readyPoll = 2 * time.Second
)

// NotReadySince returns since when the operator knows that the node of an instance does not work. The status has that, by the
// operator's clock; a kubelet dates its report by its host's clock, which may be wrong.
func NotReadySince(instance *v1alpha1.WindowsInstance, now time.Time) time.Time {
	known := instance.Status.Readiness
	if known == nil || known.Ready || known.Since.After(now) {
		return now
	}
	return known.Since.Time
}

// AwaitRepair waits a while before the operator looks at a NotReady node over SSH.
func AwaitRepair(instance *v1alpha1.WindowsInstance, node *corev1.Node, now time.Time) *result.Result {
	since := NotReadySince(instance, now)
	rest := notReadyGrace - now.Sub(since)
	if rest <= 0 {
		return nil
	}
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonNodeNotReady, Outcome: result.Wait, After: rest,
		Message: fmt.Sprintf("Node %s has not been Ready since %s: %s", node.Name, since.UTC().Format(time.RFC3339),
			NotReadyMessage(node)),
		Next: "The agent on the host tries to repair it; the operator connects to the host if the node is not Ready within two minutes.",
	}
}

// WhyNotReady explains why the Node is not known to be Ready, or returns "". A report from before the running kubelet was
// started does not count.
func WhyNotReady(s *scope.Scope, node *corev1.Node, kubeletStarted time.Time) string {
	message := "The kubelet of Node " + s.NodeName() + " does not report Ready yet."
	switch {
	case node == nil:
		return message
	case !nodeidentity.Ready(node):
		return message + " It says: " + NotReadyMessage(node)
	case nodeidentity.ReadyCondition(node).LastHeartbeatTime.Time.Before(kubeletStarted.Truncate(time.Second)): // the API has whole seconds
		return message + " It has not reported at all since it began at " + kubeletStarted.UTC().Format(time.RFC3339) + "."
	}
	return ""
}

// AwaitReady waits until the Node is known to be Ready; awaited names the wait.
func AwaitReady(s *scope.Scope, node *corev1.Node, now time.Time, awaited, message string) *result.Result {
	o := s.Awaited(now, awaited, readyLimit, &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonNodeNotReady,
		Outcome: result.ChangeFailed, Message: message,
		Next: "All checks on the host passed. The kubelet reports within a minute.",
	})
	switch {
	case o.Outcome != result.Wait:
		s.Host.Verified = nil // when that kubelet began may not be true any more
	case node != nil && nodeidentity.Ready(node):
		o.After = min(o.After, readyPoll)
	}
	return o
}

// MarkReady takes the Ready condition from the Node, for a host that is not looked at.
func MarkReady(s *scope.Scope, node *corev1.Node) {
	if nodeidentity.Ready(node) {
		message := "The node is Ready."
		if IsOlder(node) {
			message += " It was configured by another version of the operator."
		}
		s.Pass(v1alpha1.ConditionReady, message)
		return
	}
	s.Passed[v1alpha1.ConditionReady] = metav1.Condition{
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeNotReady,
		Message: fmt.Sprintf("Node %s is not Ready: %s", node.Name, NotReadyMessage(node)),
	}
}

// AwaitRestarted returns the wait for a node whose host has restarted on request. An event of the Node ends the wait.
func AwaitRestarted(node *corev1.Node) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonNodeNotReady, Outcome: result.Wait, KeepsTurn: true,
		Message: fmt.Sprintf("The host has restarted, and Node %s is not Ready yet: %s", node.Name, NotReadyMessage(node)),
		Next:    "The operator makes the node schedulable when the kubelet reports Ready.",
	}
}
