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

// Transitions are the conditions of an instance in the order in which they came to be what they are.
func Transitions(i Instance) []metav1.Condition {
	conditions := slices.Clone(i.Status.Conditions)
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int {
		return a.LastTransitionTime.Compare(b.LastTransitionTime.Time)
	})
	return conditions
}

// AfterFailure says in which state a change that has failed left the host.
func AfterFailure(failed v1alpha1.FailedChange) string {
	switch {
	case failed.RolledBack:
		return "The host was rolled back."
	case failed.DrainTimedOut:
		return "The drain did not finish in time, and nothing on the host was changed."
	}
	return "The host was not rolled back."
}

// comesSoon are the reasons for which the operator is not connected to a host that is not dead.
var comesSoon = []string{v1alpha1.ReasonWaiting, v1alpha1.ReasonUserDataInProgress}

// outOfReach says why an instance counts as dead: the operator does not get through to the host, or its kubelet no longer
// reports. It is empty for all others. The Node may be nil, if there is none or it could not be read.
func outOfReach(i Instance, node *corev1.Node) string {
	reachable := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReachable)
	if reachable != nil && reachable.Status == metav1.ConditionFalse && !slices.Contains(comesSoon, reachable.Reason) {
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

// Health is how an instance is, the worst first.
type Health int

// The values of Health.
const (
	OutOfReach Health = iota
	NotReady
	NotUpToDate
	Well
)

// HealthOf returns how an instance is, and why it is not well. The Node may be nil.
func HealthOf(i Instance, node *corev1.Node) (health Health, why string) {
	why = i.Status.NextAction
	if obstacle := Obstacle(i); obstacle != nil && obstacle.Message != "" {
		why = obstacle.Message
	}
	reason := outOfReach(i, node)
	switch {
	case reason != "":
		return OutOfReach, reason
	case !IsTrue(i, v1alpha1.ConditionReady):
		return NotReady, why
	case !IsTrue(i, v1alpha1.ConditionUpToDate):
		return NotUpToDate, why
	}
	return Well, ""
}
