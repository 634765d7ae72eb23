package fakemachineapi

import (
	"context"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// updateStatus writes the counts of the set's Machines and returns the time after which a ready Node becomes
// available; 0 if there is none.
func (r *machineSetReconciler) updateStatus(
	ctx context.Context, set *machinev1.MachineSet, selector labels.Selector, machines []*machinev1.Machine,
) (time.Duration, error) {
	before := set.DeepCopy()
	status := &set.Status
	status.Replicas, status.FullyLabeledReplicas, status.ReadyReplicas, status.AvailableReplicas = int32(len(machines)), 0,
		0, 0
	status.ObservedGeneration = set.Generation
	status.LabelSelector = selector.String()
	status.ErrorReason, status.ErrorMessage = nil, nil
	template := labels.SelectorFromSet(set.Spec.Template.Labels)
	var waiting time.Duration
	for _, m := range machines {
		if template.Matches(labels.Set(m.Labels)) {
			status.FullyLabeledReplicas++
		}
		node, err := r.nodeOf(ctx, m)
		if err != nil {
			return 0, err
		}
		ready, wait := nodeAvailability(node, set.Spec.MinReadySeconds, r.Clock.Now())
		if ready {
			status.ReadyReplicas++
		}
		if ready && wait == 0 {
			status.AvailableReplicas++
		}
		if wait > 0 && (waiting == 0 || wait < waiting) {
			waiting = wait
		}
	}
	return waiting, r.saveStatus(ctx, before, set)
}

// nodeAvailability reports whether a Node is ready, and the remaining time until it counts as available.
func nodeAvailability(node *corev1.Node, minReadySeconds int32, now time.Time) (bool, time.Duration) {
	if node == nil {
		return false, 0
	}
	ready := nodeCondition(node, corev1.NodeReady)
	if ready == nil || ready.Status != corev1.ConditionTrue {
		return false, 0
	}
	wait := ready.LastTransitionTime.Add(time.Duration(minReadySeconds) * time.Second).Sub(now)
	if minReadySeconds == 0 || wait < 0 {
		wait = 0
	}
	return true, wait
}
