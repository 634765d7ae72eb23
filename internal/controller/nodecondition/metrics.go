package nodecondition

import corev1 "k8s.io/api/core/v1"

// statusOf returns the status of a condition as a value of the metric's label. The host writes the condition,
// and may write any other status.
func statusOf(condition *corev1.NodeCondition) corev1.ConditionStatus {
	if condition != nil && (condition.Status == corev1.ConditionTrue || condition.Status == corev1.ConditionFalse) {
		return condition.Status
	}
	return corev1.ConditionUnknown
}
