package removal

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Drain evicts the pods before the node is deleted.
func (r *Removal) Drain(ctx context.Context, s *scope.Scope) *result.Result {
	if s.HostTransferred || s.NodeName() == "" {
		return nil
	}
	node, err := r.Nodes.Get(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || (isForgetRequested(s) && !nodeidentity.IsReady(node)) {
		return nil
	}
	if own, err := r.Nodes.Owns(ctx, s, node); err != nil || !own {
		return ownershipFailure(err)
	}
	if o := r.Rollback.ConsumeRetryAnnotation(ctx, s); o != nil {
		return o
	}
	if o := r.drainPostponed(s); o != nil {
		return o
	}
	// The removal of a node that is not ready disrupts nothing.
	if nodeidentity.IsReady(node) && s.WasActivated(node) {
		if isAwaitingHost(s, node) {
			return nil
		}
		if o := r.Disruptor.AcquireSlot(ctx, s, node, v1alpha1.CauseRemoval); o != nil {
			o.Condition, o.NextAction = v1alpha1.ConditionReady,
				"The node stays in service, and is removed from the cluster when the WindowsDisruptionPolicy allows it."
			return o
		}
	}
	o := r.Disruptor.Drain(ctx, s, node, v1alpha1.CauseRemoval)
	if o != nil && !nodeidentity.IsReady(node) {
		o.NextAction += " " + r.forgetHint(s)
	}
	return o
}

// isAwaitingHost reports whether the drain has begun and the host has not responded since. The connection is
// retried without a slot, and resumeDrain acquires the slot.
func isAwaitingHost(s *scope.Scope, node *corev1.Node) bool {
	return s.Session.Unresponsive && node.Spec.Unschedulable && NeedsHost(s)
}

// drainPostponed returns the wait until the next drain, if the pods were not evicted in time.
func (r *Removal) drainPostponed(s *scope.Scope) *result.Result {
	failed := s.Instance.Status.FailedChange
	if failed == nil || failed.Cause != v1alpha1.CauseRemoval || failed.RetryAfter == nil || s.Session.Attempts > 0 {
		return nil
	}
	rest := failed.RetryAfter.Sub(r.Clock.Now())
	if rest <= 0 {
		return nil
	}
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonDrainTimedOut, Outcome: result.Wait, RequeueAfter: rest,
		Message: failed.Message,
		NextAction: "The node is drained again at " + failed.RetryAfter.UTC().Format(time.RFC3339) +
			". If a PodDisruptionBudget allows no disruption, its owner must change it.",
	}
}
