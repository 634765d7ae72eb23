package rollback

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
)

// RollBack rolls back the host of a failed change, and returns the node to service. The progress is read from
// the host and the status, so that RollBack continues after an interruption.
func (f *Rollback) RollBack(ctx context.Context, s *scope.Scope) *result.Result {
	failed, facts := s.Instance.Status.FailedChange, s.Host.Facts
	if failed == nil || failed.RolledBack || failed.PreviousDigest == "" {
		return nil
	}
	node, err := f.Nodes.Get(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !s.WasActivated(node) || !f.Changes.Matches(s, node, failed) {
		return nil
	}
	if facts.Applied != failed.PreviousDigest || facts.RollbackTarget != "" {
		if facts.RollbackTarget != failed.PreviousDigest {
			failed.PreviousDigest = "" // no rollback is possible any more; the change is retried
			return nil
		}
		if o := f.runRollback(s); o != nil {
			return f.rollbackIncomplete(s, o)
		}
	}
	if o := f.checkRolledBack(s, node); o != nil {
		return f.rollbackIncomplete(s, o)
	}
	// The node is updated before the record, so that the record is true for every reader.
	if err := f.Nodes.Uncordon(ctx, s.Instance); err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "uncordon the Node", err)
	}
	failed.RolledBack = true
	failed.RetryAfter = ptr.To(metav1.NewTime(f.Clock.Now().Add(RetryDelay(s.Settings.FailureDeadline,
		failed.Attempts))))
	s.Instance.Status.SpecDigest = failed.PreviousDigest
	f.Events.Emit(status.RolledBackEvent(s.Instance, node))
	s.Session.RollbackTarget = ""
	s.Host.Close()
	if o := f.HoldFailedChange(ctx, s); o != nil {
		return o
	}
	return &result.Result{ // the cached facts of the host were discarded
		Condition: v1alpha1.ConditionUpToDate, Reason: v1alpha1.ReasonInProgress, Outcome: result.Wait,
		HoldsSlot: true, RequeueAfter: requeueDelay,
		Message: "The host was restored to its state before the change.", NextAction: "The operator verifies the node.",
	}
}

// runRollback runs the rollback with the agent that applied the previous spec: only that agent interprets the
// spec reliably.
func (f *Rollback) runRollback(s *scope.Scope) *result.Result {
	line, pending, err := s.Host.Rollback(func() *result.Result {
		s.Session.WaitName = ""
		return nil
	})
	if pending != nil {
		return pending
	}
	if err != nil {
		return s.HandleFailure(v1alpha1.ConditionReady, err)
	}
	s.Session.WaitSpecDigest = ""
	s.Host.ForgetState()
	if line.Type == agentapi.TypeResult && len(line.Result.Plan.Needs) > 0 {
		// The previous certificate has expired meanwhile. The previous state could not be restored, so the
		// change is retried.
		s.Instance.Status.FailedChange.PreviousDigest = ""
		return &result.Result{
			Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonRollbackIncomplete, Outcome: result.Wait,
			HoldsSlot: true, RequeueAfter: requeueDelay,
			Message:    "To restore the host to its state before the change, the agent needs " + string(line.Result.Plan.Needs[0]) + ".",
			NextAction: "The operator retries the change, which installs it.",
		}
	}
	if line.Type == agentapi.TypeRebooting {
		f.Events.Emit(status.HostRebootingEvent(s.Instance))
		return s.BeginRestart()
	}
	s.Host.Facts = line.Result.Facts
	return nil
}

// checkRolledBack makes the same agent verify the node with the checks of the previous spec.
func (f *Rollback) checkRolledBack(s *scope.Scope, node *corev1.Node) *result.Result {
	verified, pending, err := s.Host.VerifyRolledBack()
	if pending != nil {
		return pending
	}
	if err != nil {
		return s.HandleFailure(v1alpha1.ConditionReady, err)
	}
	for _, check := range verified.Checks {
		if !check.Passed && !check.Advisory {
			return &result.Result{Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonChecksFailed,
				Outcome: result.ChangeFailed, Message: check.Name + ": " + check.Message}
		}
	}
	if message := nodes.ExplainNotReady(s, node, verified.KubeletStarted); message != "" {
		return nodes.AwaitReady(s, node, f.Clock.Now(), "the Node to be Ready again", message)
	}
	return nil
}

// rollbackIncomplete converts a failure into the message that the rollback is incomplete.
func (f *Rollback) rollbackIncomplete(s *scope.Scope, o *result.Result) *result.Result {
	if !o.Outcome.IsFailure() {
		return o
	}
	failed := s.Instance.Status.FailedChange
	o.Message = "The change has failed (" + failed.Message + "), and the rollback has not succeeded yet: " + o.Message
	o.Reason, o.Outcome, o.HoldsSlot = v1alpha1.ReasonRollbackIncomplete, result.Retry, true
	o.NextAction = "The operator retries the rollback. Check the host for the problem that the message names."
	return o
}
