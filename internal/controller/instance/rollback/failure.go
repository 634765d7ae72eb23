// Package rollback counts and records failures of a change of a node in service. After several failures it rolls
// the host back, and keeps the previous state until the next attempt.
package rollback

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// maxChangeAttempts is the number of attempts of a change of a node in service before the node is rolled back.
const maxChangeAttempts = 3

// requeueDelay is the delay before the next reconcile when a rollback has started or ended.
const requeueDelay = 2 * time.Second

// Rollback counts failures of a change, and rolls the host back.
type Rollback struct {
	Client  client.Client // for instances
	Nodes   nodes.Nodes
	Events  status.Recorder
	Changes *FailedChanges
	Clock   clock.PassiveClock
}

// HoldFailedChange leaves a node with a failed change unchanged until another change is desired, the next attempt is
// due, or an administrator requests an attempt.
func (f *Rollback) HoldFailedChange(ctx context.Context, s *scope.Scope) *result.Result {
	failed := s.Instance.Status.FailedChange // ConsumeRetryAnnotation may clear the failure
	if o := f.ConsumeRetryAnnotation(ctx, s); o != nil {
		return o
	}
	if s.Instance.Status.FailedChange == nil || s.NodeName() == "" {
		return nil
	}
	node, err := f.Nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.WasActivated(node) {
		return nil
	}
	if !f.Changes.Matches(s, node, failed) {
		if f.Changes.IsObsolete(s, node, failed) {
			s.Instance.Status.FailedChange = nil // the failed change is no longer desired
		}
		return nil
	}
	now := f.Clock.Now()
	if !failed.RolledBack || failed.RetryAfter == nil || !failed.RetryAfter.After(now) {
		return nil // the rollback is incomplete, or the next attempt is due
	}
	if !nodeidentity.IsReady(node) {
		return nodes.AwaitRepair(s.Instance, node, now) // most causes resolve without the failed change
	}
	if nodes.IsCordoned(node) {
		if err := f.Nodes.Uncordon(ctx, s.Instance); err != nil {
			return result.FromAPIError(v1alpha1.ConditionUpToDate, "uncordon the Node", err)
		}
	}
	s.NodeInService = true
	s.RestoreTrueConditions()
	reason := v1alpha1.ReasonChangeFailed
	if failed.DrainTimedOut {
		reason = failed.Reason
	}
	s.RequestSlotRelease()
	return &result.Result{
		Condition: v1alpha1.ConditionUpToDate, Reason: reason, Outcome: result.Wait,
		RequeueAfter: failed.RetryAfter.Sub(now), Message: failed.Message,
		NextAction: "The node stays in service without the change. The operator retries at " + failed.RetryAfter.UTC().Format(time.RFC3339) +
			", " + f.Changes.RetryHint(s),
	}
}

// ConsumeRetryAnnotation clears the failure when an administrator has requested another attempt.
func (f *Rollback) ConsumeRetryAnnotation(ctx context.Context, s *scope.Scope) *result.Result {
	if _, asked := s.Instance.Annotations[v1alpha1.AnnotationRetry]; !asked {
		return nil
	}
	if s.Stored.Status.FailedChange != nil { // the status first, so that a restart of the operator cannot lose the request
		s.Instance.Status.FailedChange = nil
		return result.WriteFirst(v1alpha1.ConditionUpToDate)
	}
	after := s.Instance.DeepCopy()
	delete(after.Annotations, v1alpha1.AnnotationRetry)
	if err := f.Client.Patch(ctx, after, client.MergeFrom(s.Instance)); client.IgnoreNotFound(err) != nil {
		return result.FromAPIError(v1alpha1.ConditionUpToDate, "remove the annotation "+v1alpha1.AnnotationRetry, err)
	}
	s.Instance.Annotations, s.Instance.ResourceVersion = after.Annotations, after.ResourceVersion
	s.Stored.Annotations, s.Stored.ResourceVersion = after.Annotations, after.ResourceVersion
	return nil
}

// RecordFailure counts a failed result of a change of a node in service. After maxChangeAttempts failures the change
// has failed, and the host is rolled back if it still has its previous state.
func (f *Rollback) RecordFailure(ctx context.Context, s *scope.Scope, o *result.Result) *result.Result {
	if s.Instance.Spec.DesiredState != v1alpha1.DesiredStateNode || o.Outcome != result.ChangeFailed {
		return o
	}
	node, err := f.Nodes.Get(ctx, s.Instance)
	if err != nil || node == nil || !s.WasActivated(node) || s.Instance.Status.SpecDigest != "" {
		return o
	}
	s.Session.ChangeFailures++
	if s.Session.ChangeFailures < maxChangeAttempts {
		return o
	}
	s.Session.ChangeFailures = 0
	if s.Session.RollbackTarget == "" {
		f.recordNoRollback(s, node, o)
		return o
	}
	f.Changes.Record(s, node, o.Reason, o.Message, s.Session.RollbackTarget)
	f.Events.Emit(status.ChangeFailedEvent(s.Instance, node, o))
	return &result.Result{
		Phase: o.Phase, Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonRollbackIncomplete,
		Outcome: result.Wait, HoldsSlot: true, RequeueAfter: requeueDelay,
		Message: "The change has failed: " + o.Message, NextAction: "The operator restores the host to its state before the change.",
	}
}

// recordNoRollback records a failed change of a host that cannot be rolled back, so that other hosts do not
// follow. The operator continues to retry the change.
func (f *Rollback) recordNoRollback(s *scope.Scope, node *corev1.Node, o *result.Result) {
	if failed := s.Instance.Status.FailedChange; failed != nil && !failed.RolledBack && f.Changes.Matches(s, node, failed) &&
		failed.RetryAfter.After(f.Clock.Now()) {
		return
	}
	f.Changes.Record(s, node, o.Reason, o.Message, "")
	f.Events.Emit(status.ChangeFailedEvent(s.Instance, node, o))
}
