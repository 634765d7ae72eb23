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

// notReadyGracePeriod is the time that a node may be NotReady before the operator checks its host. A manual reboot
// or a restarted kubelet recovers without help, as do most problems that the agent repairs.
const notReadyGracePeriod = 2 * time.Minute

const (
	// readyTimeout is the time for a node that passed all checks to report Ready. After this time, the wait counts as
	// a failure of the change.
	readyTimeout = 2 * time.Minute
	// readyPollInterval is the interval between checks of a Node without a report since the start of its kubelet. A
	// report that equals the previous report causes no event of the Node.
	readyPollInterval = 2 * time.Second
)

// NotReadySince returns the time since which the operator knows that the node of an instance is not ready.
// The time comes from the status and the operator's clock. The timestamps of a kubelet depend on the clock of
// its host, which may be wrong.
func NotReadySince(instance *v1alpha1.WindowsInstance, now time.Time) time.Time {
	known := instance.Status.Readiness
	if known == nil || known.Ready || known.Since.After(now) {
		return now
	}
	return known.Since.Time
}

// AwaitRepair returns a wait before the operator checks a NotReady node over SSH; nil if the wait is over.
func AwaitRepair(instance *v1alpha1.WindowsInstance, node *corev1.Node, now time.Time) *result.Result {
	since := NotReadySince(instance, now)
	rest := notReadyGracePeriod - now.Sub(since)
	if rest <= 0 {
		return nil
	}
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonNodeNotReady, Outcome: result.Wait, RequeueAfter: rest,
		Message: fmt.Sprintf("Node %s has not been Ready since %s: %s", node.Name, since.UTC().Format(time.RFC3339),
			NotReadyMessage(node)),
		NextAction: "The agent on the host tries to repair it; the operator connects to the host if the node is not Ready within two minutes.",
	}
}

// ExplainNotReady explains why the Node is not known to be Ready, or returns "". A report from before the start
// of the running kubelet does not count.
func ExplainNotReady(s *scope.Scope, node *corev1.Node, kubeletStarted time.Time) string {
	message := "The kubelet of Node " + s.NodeName() + " does not report Ready yet."
	switch {
	case node == nil:
		return message
	case !nodeidentity.IsReady(node):
		return message + " It reports: " + NotReadyMessage(node)
	case nodeidentity.ReadyCondition(node).LastHeartbeatTime.Time.Before(kubeletStarted.Truncate(time.Second)): // the API stores whole seconds
		return message + " It has not reported since its start at " + kubeletStarted.UTC().Format(time.RFC3339) + "."
	}
	return ""
}

// AwaitReady returns a wait until the Node is known to be Ready; awaited names the wait.
func AwaitReady(s *scope.Scope, node *corev1.Node, now time.Time, awaited, message string) *result.Result {
	o := s.WithTimeout(now, awaited, readyTimeout, &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonNodeNotReady,
		Outcome: result.ChangeFailed, Message: message,
		NextAction: "All checks on the host passed. The kubelet reports within a minute.",
	})
	switch {
	case o.Outcome != result.Wait:
		s.Host.Verified = nil // the recorded kubelet start may be outdated
	case node != nil && nodeidentity.IsReady(node):
		o.RequeueAfter = min(o.RequeueAfter, readyPollInterval)
	}
	return o
}

// MarkReady derives the Ready condition from the Node, for a host that is not checked.
func MarkReady(s *scope.Scope, node *corev1.Node) {
	if nodeidentity.IsReady(node) {
		message := "The node is Ready."
		if IsLegacy(node) {
			message += " It was configured by another version of the operator."
		}
		s.MarkTrue(v1alpha1.ConditionReady, message)
		return
	}
	s.ObservedConditions[v1alpha1.ConditionReady] = metav1.Condition{
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeNotReady,
		Message: fmt.Sprintf("Node %s is not Ready: %s", node.Name, NotReadyMessage(node)),
	}
}

// AwaitRestarted returns the wait for a node after a requested restart of its host. An event of the Node ends
// the wait.
func AwaitRestarted(node *corev1.Node) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonNodeNotReady, Outcome: result.Wait, HoldsSlot: true,
		Message:    fmt.Sprintf("The host has restarted, and Node %s is not Ready yet: %s", node.Name, NotReadyMessage(node)),
		NextAction: "The operator uncordons the node when the kubelet reports Ready.",
	}
}
