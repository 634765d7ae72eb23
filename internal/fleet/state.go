package fleet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// HasNoPendingWork reports whether an instance is Ready and up to date, so that no work remains.
func HasNoPendingWork(instance Instance) bool {
	return IsTrue(instance, v1alpha1.ConditionReady) && IsTrue(instance, v1alpha1.ConditionUpToDate)
}

// IsTrue reports whether a condition of an instance is True, and was written for the current spec.
func IsTrue(instance Instance, condition string) bool {
	return instance.Status.ObservedGeneration == instance.Generation &&
		meta.IsStatusConditionTrue(instance.Status.Conditions, condition)
}

// State returns the state of an instance in one word: its summary, or Pending before the operator's first reconcile.
func State(instance Instance) string {
	if instance.Status.Summary == "" {
		return "Pending"
	}
	return instance.Status.Summary
}

// BlockingCondition returns the condition with the reason for an instance's state; nil if nothing blocks the instance.
func BlockingCondition(instance Instance) *metav1.Condition {
	conditions := instance.Status.Conditions
	for i := range conditions {
		if conditions[i].Status != metav1.ConditionTrue && conditions[i].Reason == instance.Status.Summary {
			return &conditions[i]
		}
	}
	return nil
}

// Age returns the time since then in the format of kubectl's ages; empty for a zero time.
func Age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(then)))
}

// Since returns the time at the start of an instance's current state.
func Since(instance Instance) time.Time {
	if obstacle := BlockingCondition(instance); obstacle != nil {
		return obstacle.LastTransitionTime.Time
	}
	if ready := instance.Status.Readiness; ready != nil {
		return ready.Since.Time
	}
	return instance.CreationTimestamp.Time
}

// LastSeen returns the time of the last occurrence of an event.
func LastSeen(event corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}

// Policy returns the disruption policy for an instance; nil if there is none yet.
func (f Fleet) Policy(instance Instance) *v1alpha1.WindowsDisruptionPolicy {
	for i := range f.Policies {
		if f.Policies[i].Namespace == instance.Namespace {
			return &f.Policies[i]
		}
	}
	return nil
}

// Disruption returns the entry of an instance in the policy's status; nil if the instance is not being disrupted.
func (f Fleet) Disruption(instance Instance) *v1alpha1.Disruption {
	policy := f.Policy(instance)
	if policy == nil {
		return nil
	}
	for i, entry := range policy.Status.Disruptions {
		if entry.InstanceUID == instance.UID {
			return &policy.Status.Disruptions[i]
		}
	}
	return nil
}
