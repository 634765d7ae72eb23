package rollback

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/change"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/readiness"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// RollBack rolls the host of a failed change back, and brings its node into service again. It reads its progress from
// the host and the status, so it continues wherever it was interrupted.
func (f *Rollback) RollBack(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	failed, facts := s.Instance.Status.FailedChange, s.Session.Facts
	if failed == nil || failed.RolledBack || failed.PreviousDigest == "" {
		return nil
	}
	node, err := f.Nodes.Of(ctx, s.Instance)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !s.Released(node) || !f.Changes.Same(s, node, failed) {
		return nil
	}
	if facts.Applied != failed.PreviousDigest || facts.Fallback != "" {
		if facts.Fallback != failed.PreviousDigest {
			failed.PreviousDigest = "" // there is no way back any more: forward it goes
			return nil
		}
		if o := f.runRollback(ctx, s); o != nil {
			return f.notRolledBack(s, o)
		}
	}
	if o := f.checkRolledBack(ctx, s, node); o != nil {
		return f.notRolledBack(s, o)
	}
	// First the node, then the record: a reader of the record finds the node as it says.
	if err := f.Nodes.TakeIntoService(ctx, s.Instance); err != nil {
		return obstacle.API(v1alpha1.ConditionReady, "make the Node schedulable again", err)
	}
	failed.RolledBack = true
	failed.RetryAfter = ptr.To(metav1.NewTime(f.Clock.Now().Add(change.RetryDelay(s.Settings.FailureDeadline,
		failed.Attempts))))
	s.Instance.Status.SpecDigest = failed.PreviousDigest
	if err := f.Status.Patch(ctx, s); err != nil {
		return obstacle.API(v1alpha1.ConditionReady, "note that the host is again what it was", err)
	}
	f.Events.Emit(event.RolledBack(s.Instance, node))
	s.Session.Fallback = ""
	f.Link.Close(s)
	if o := f.Remind(ctx, s); o != nil {
		return o
	}
	return &obstacle.Obstacle{ // what was known of the host was let go
		Condition: v1alpha1.ConditionUpToDate, Reason: v1alpha1.ReasonInProgress, Outcome: obstacle.Wait,
		KeepsTurn: true, After: nextLook,
		Message: "The host was restored to its state before the change.", Next: "The operator looks at it again.",
	}
}

// runRollback has the host brought back by the agent that has applied what it is brought back to: no other agent knows
// for sure what that means.
func (f *Rollback) runRollback(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	s.Session.Waiting = ""
	line, err := f.Link.RunBy(ctx, s, s.Session.Facts.FallbackAgent, verb.Rollback)
	if err != nil {
		return f.Link.Failed(s, v1alpha1.ConditionReady, err)
	}
	s.Session.Spec, s.Session.Applied = "", ""
	if line.Type == verb.TypeResult && len(line.Result.Plan.Needs) > 0 {
		// Its certificate has expired meanwhile: what the host was before could not be brought up, so forward it goes again.
		s.Instance.Status.FailedChange.PreviousDigest = ""
		return &obstacle.Obstacle{
			Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonChangeFailedNotRolledBack, Outcome: obstacle.Wait,
			KeepsTurn: true, After: nextLook,
			Message: "To restore the host to its state before the change, the agent needs " + string(line.Result.Plan.Needs[0]) + ".",
			Next:    "The operator tries the change again, which brings the host what it needs.",
		}
	}
	if line.Type == verb.TypeRebooting {
		f.Events.Emit(event.HostRestarts(s.Instance))
		return f.Link.BeginRestart(s)
	}
	s.Session.Facts = line.Result.Facts
	return nil
}

// checkRolledBack has the same agent prove that the node works again, by the checks of what it was brought back to.
func (f *Rollback) checkRolledBack(ctx context.Context, s *scope.Scope, node *corev1.Node) *obstacle.Obstacle {
	line, err := f.Link.RunBy(ctx, s, s.Session.Facts.AppliedAgent, verb.Verify)
	if err != nil {
		return f.Link.Failed(s, v1alpha1.ConditionReady, err)
	}
	for _, check := range line.Result.Checks {
		if !check.Passed && !check.Advisory {
			return &obstacle.Obstacle{Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonChecksFailed,
				Outcome: obstacle.ChangeFailed, Message: check.Name + ": " + check.Message}
		}
	}
	if message := readiness.NotReady(s, node, line.Result.KubeletStarted); message != "" {
		return readiness.Await(s, node, f.Clock.Now(), "the Node to be Ready again", message)
	}
	return nil
}

// notRolledBack turns an obstacle into the message that the rollback has not ended.
func (f *Rollback) notRolledBack(s *scope.Scope, o *obstacle.Obstacle) *obstacle.Obstacle {
	if !o.Outcome.IsFailure() {
		return o
	}
	failed := s.Instance.Status.FailedChange
	o.Message = "The change has failed (" + failed.Message + "), and the rollback has not succeeded yet: " + o.Message
	o.Reason, o.Outcome, o.KeepsTurn = v1alpha1.ReasonChangeFailedNotRolledBack, obstacle.TryAgain, true
	o.Next = "The operator tries the rollback again. The message names what to check on the host."
	return o
}
