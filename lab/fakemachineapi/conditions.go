package fakemachineapi

import (
	"slices"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setCondition sets a condition. The transition time only changes with the status.
func setCondition(conditions *[]machinev1.Condition, now time.Time, c machinev1.Condition) {
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	i := slices.IndexFunc(*conditions, func(other machinev1.Condition) bool { return other.Type == c.Type })
	if i < 0 {
		*conditions = append(*conditions, c)
		return
	}
	if old := (*conditions)[i]; old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	(*conditions)[i] = c
}

func isConditionTrue(conditions []machinev1.Condition, kind machinev1.ConditionType) bool {
	return slices.ContainsFunc(conditions, func(c machinev1.Condition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func trueCondition(kind machinev1.ConditionType, message string) machinev1.Condition {
	return machinev1.Condition{Type: kind, Status: corev1.ConditionTrue, Message: message}
}

func falseCondition(kind machinev1.ConditionType, severity machinev1.ConditionSeverity, reason,
	message string) machinev1.Condition {
	return machinev1.Condition{Type: kind, Status: corev1.ConditionFalse, Severity: severity,
		Reason: reason, Message: message}
}
