package fakemachineapi

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const defaultNodeStartupTimeout = 10 * time.Minute

// unhealthyReason returns the reason why a Machine is unhealthy, or the time after which it becomes unhealthy without
// changes; "" and 0 for a healthy Machine. The Node is nil if the Machine has no Node or the Node no longer
// exists.
func unhealthyReason(check *machinev1.MachineHealthCheck, m *machinev1.Machine, node *corev1.Node,
	now time.Time) (string, time.Duration) {
	if currentPhase(m) == machinev1.PhaseFailed {
		return "its phase is Failed", 0
	}
	if m.Status.NodeRef == nil {
		timeout := defaultNodeStartupTimeout
		if set := check.Spec.NodeStartupTimeout; set != nil {
			timeout = set.Duration
		}
		if timeout == 0 {
			return "", 0
		}
		return overdueMessage("it has no Node", m.CreationTimestamp.Time, timeout, now)
	}
	if node == nil {
		return "its Node " + m.Status.NodeRef.Name + " is gone", 0
	}
	var soonest time.Duration
	for _, c := range check.Spec.UnhealthyConditions {
		condition := nodeCondition(node, c.Type)
		if condition == nil || condition.Status != c.Status {
			continue
		}
		what := fmt.Sprintf("its Node's condition %s is %s", c.Type, c.Status)
		reason, wait := overdueMessage(what, condition.LastTransitionTime.Time, c.Timeout.Duration, now)
		if reason != "" {
			return reason, 0
		}
		if soonest == 0 || wait < soonest {
			soonest = wait
		}
	}
	return "", soonest
}

// overdueMessage returns a message if the timeout has expired, otherwise the remaining time.
func overdueMessage(what string, since time.Time, timeout time.Duration, now time.Time) (string, time.Duration) {
	left := since.Add(timeout).Sub(now)
	if left < 0 {
		return fmt.Sprintf("%s, and that for more than %s", what, timeout), 0
	}
	return "", left + time.Second // Times in the API are full seconds.
}

// maxUnhealthy returns the maximum number of unhealthy Machines that still allows remediation; a percentage is
// rounded down.
func maxUnhealthy(limit *intstr.IntOrString, machines int) (int, error) {
	if limit == nil {
		return machines, nil
	}
	if limit.Type == intstr.Int {
		return max(limit.IntValue(), 0), nil
	}
	number, percent := strings.CutSuffix(limit.StrVal, "%")
	value, err := strconv.Atoi(number)
	if err != nil || value < 0 {
		return 0, fmt.Errorf("spec.maxUnhealthy %q is neither a number nor a percentage: no Machine is remediated",
			limit.StrVal)
	}
	if percent {
		value = value * machines / 100
	}
	return value, nil
}
