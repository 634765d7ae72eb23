package fleet

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Transitions returns the conditions of an instance, sorted by the time of the last transition.
func Transitions(i Instance) []metav1.Condition {
	conditions := slices.Clone(i.Status.Conditions)
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int {
		return a.LastTransitionTime.Compare(b.LastTransitionTime.Time)
	})
	return conditions
}

// DescribeAfterFailure describes the state of the host after a failed change.
func DescribeAfterFailure(failed v1alpha1.FailedChange) string {
	switch {
	case failed.RolledBack:
		return "The host was rolled back."
	case failed.DrainTimedOut:
		return "The drain did not finish in time, and nothing on the host was changed."
	}
	return "The host was not rolled back."
}

// transientReasons lists the reasons for a missing connection to a host that is not considered unreachable.
var transientReasons = []string{v1alpha1.ReasonWaiting, v1alpha1.ReasonUserDataInProgress}

// unreachableReason returns the reason that an instance counts as unreachable: the operator cannot connect to the
// host, or the kubelet no longer reports. It returns "" for all other instances. The Node may be nil, if it
// does not exist or could not be read.
func unreachableReason(i Instance, node *corev1.Node) string {
	reachable := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReachable)
	if reachable != nil && reachable.Status == metav1.ConditionFalse && !slices.Contains(transientReasons, reachable.Reason) {
		return fmt.Sprintf("%s: %s", reachable.Reason, reachable.Message)
	}
	if node == nil {
		return ""
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
			return fmt.Sprintf("the kubelet of node %s has not reported since %s UTC", node.Name,
				c.LastHeartbeatTime.UTC().Format(time.DateTime))
		}
	}
	return ""
}

// Health is the health of an instance, the worst first.
type Health int

// The values of Health.
const (
	Unreachable Health = iota
	NotReady
	NotUpToDate
	Healthy
)

// HealthOf returns the health of an instance, and the reason of a problem. The Node may be nil.
func HealthOf(i Instance, node *corev1.Node) (health Health, why string) {
	why = i.Status.NextAction
	if obstacle := BlockingCondition(i); obstacle != nil && obstacle.Message != "" {
		why = obstacle.Message
	}
	reason := unreachableReason(i, node)
	switch {
	case reason != "":
		return Unreachable, reason
	case !IsTrue(i, v1alpha1.ConditionReady):
		return NotReady, why
	case !IsTrue(i, v1alpha1.ConditionUpToDate):
		return NotUpToDate, why
	}
	return Healthy, ""
}
