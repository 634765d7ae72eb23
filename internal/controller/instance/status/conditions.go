package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// setConditions sets every condition in every reconcile: conditions that passed, the blocked condition, and
// conditions that depend on the blocked one. An unchecked condition stays true if true before, and becomes
// unknown if false before.
func setConditions(status *v1alpha1.WindowsInstanceStatus, passed map[string]metav1.Condition, o *result.Result,
	generation int64, now time.Time) {
	blocked := ""
	for _, conditionType := range scope.Conditions {
		condition, found := passed[conditionType]
		previous := meta.FindStatusCondition(status.Conditions, conditionType)
		switch {
		case previous != nil && o.KeepsCondition(conditionType):
			condition = *previous
		case o != nil && o.Outcome != result.Done && o.Condition == conditionType:
			blocked = conditionType
			condition = metav1.Condition{Status: o.Status(), Reason: o.Reason, Message: o.Message}
		case found:
		case conditionType == v1alpha1.ConditionReady && blocked != "":
			condition = metav1.Condition{Status: metav1.ConditionFalse, Reason: o.Reason, Message: o.Message}
		case previous != nil && previous.Status == metav1.ConditionTrue &&
			(blocked == "" || conditionType != v1alpha1.ConditionUpToDate):
			condition = *previous
		case blocked != "":
			condition = metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonDependencyNotReady,
				Message: "Waiting for condition " + blocked + "."}
		default:
			condition = metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonDependencyNotReady,
				Message: "Not checked yet."}
		}
		condition.Type, condition.ObservedGeneration = conditionType, generation
		condition.Message = sanitize.Plain(condition.Message, result.MaxMessageLength)
		condition.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	switch {
	case o == nil || o.Outcome == result.Done:
		status.Summary, status.NextAction = v1alpha1.ReasonReady, ""
	default:
		status.Summary, status.NextAction = o.Reason, sanitize.Plain(o.NextAction, result.MaxMessageLength)
	}
}
