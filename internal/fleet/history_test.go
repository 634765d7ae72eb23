package fleet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestHealthOf(t *testing.T) {
	instance := func(conditions ...metav1.Condition) Instance {
		i := Instance{}
		i.Status.Conditions = conditions
		for _, c := range conditions {
			if c.Status != metav1.ConditionTrue && i.Status.Summary == "" {
				i.Status.Summary = c.Reason
			}
		}
		return i
	}
	condition := func(kind, status, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "because"}
	}
	node := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionUnknown},
			{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.NewTime(time.Date(2026, 3, 1, 14, 30, 0, 0, time.UTC))}}}}
	}
	reached, ready, upToDate := condition(v1alpha1.ConditionReachable, "True", ""), condition(v1alpha1.ConditionReady, "True", ""),
		condition(v1alpha1.ConditionUpToDate, "True", "")
	lost := condition(v1alpha1.ConditionReachable, "False", "ConnectionTimedOut")
	for name, test := range map[string]struct {
		instance Instance
		node     *corev1.Node
		want     Health
		reason   string
	}{
		"a host that does not answer is out of reach": {instance(lost, ready), nil, Unreachable, "ConnectionTimedOut: because"},
		"whatever its kubelet says":                   {instance(lost), node(corev1.ConditionTrue), Unreachable, "ConnectionTimedOut: because"},
		"so is one whose kubelet is silent": {instance(reached, ready, upToDate), node(corev1.ConditionUnknown), Unreachable,
			"the kubelet of node n has not reported since 2026-03-01 14:30:00 UTC"},
		"a new Machine's host is not": {instance(condition(v1alpha1.ConditionReachable, "False", v1alpha1.ReasonUserDataInProgress)), nil,
			NotReady, "because"},
		"a node that is not Ready answers": {instance(reached, condition(v1alpha1.ConditionReady, "False", "NodeNotReady")),
			node(corev1.ConditionFalse), NotReady, "because"},
		"a host that nobody has looked at is not Ready": {instance(), nil, NotReady, ""},
		"one that waits for its turn is not up to date": {instance(reached, ready,
			condition(v1alpha1.ConditionUpToDate, "False", "MaxUnavailableReached")), nil, NotUpToDate, "because"},
		"one that works is well": {instance(reached, ready, upToDate), node(corev1.ConditionTrue), Healthy, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, reason := HealthOf(test.instance, test.node); got != test.want || reason != test.reason {
				t.Errorf("%d, %q; want %d, %q", got, reason, test.want, test.reason)
			}
		})
	}
}

func TestDescribeAfterFailure(t *testing.T) {
	for want, failed := range map[string]v1alpha1.FailedChange{
		"The host was rolled back.": {RolledBack: true},
		"The drain did not finish in time, and nothing on the host was changed.": {DrainTimedOut: true},
		"The host was not rolled back.":                                          {},
	} {
		if got := DescribeAfterFailure(failed); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
