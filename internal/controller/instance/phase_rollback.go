package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// rollBack brings the host of a change that has failed back to what it was, and its node into service again. What it has done is known from
// the host and the status, so that it goes on wherever it was cut off.
func (r *Reconciler) rollBack(ctx context.Context, s *scope) *obstacle {
	failed, facts := s.instance.Status.FailedChange, s.session.facts
	if failed == nil || failed.RolledBack || failed.PreviousDigest == "" {
		return nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !s.released(node) || !s.sameChange(node, failed) {
		return nil
	}
	if facts.Applied != failed.PreviousDigest || facts.Fallback != "" {
		if facts.Fallback != failed.PreviousDigest {
			failed.PreviousDigest = "" // there is no way back any more: forward it goes
			return nil
		}
		if o := s.runRollback(ctx); o != nil {
			return s.notRolledBack(o)
		}
	}
	if o := s.checkRolledBack(ctx, node); o != nil {
		return s.notRolledBack(o)
	}
	// First the node, then what is written of it: who reads that it was brought back finds it so.
	if err := s.takeIntoService(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "make the Node schedulable again", err)
	}
	failed.RolledBack = true
	failed.RetryAfter = ptr.To(metav1.NewTime(r.Clock.Now().Add(changeRetry(s.settings.FailureDeadline, failed.Attempts))))
	s.instance.Status.SpecDigest = failed.PreviousDigest
	if err := s.patchStatus(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "note that the host is again what it was", err)
	}
	s.emit(rolledBack(s.instance, node))
	s.session.fallback = ""
	s.session.forgetHost()
	r.Hosts.Close(s.instance.Name)
	if o := r.remindFailure(ctx, s); o != nil {
		return o
	}
	return &obstacle{ // what was known of the host was let go
		condition: v1alpha1.ConditionUpToDate, reason: v1alpha1.ReasonInProgress, outcome: wait, keepsTurn: true, after: firstRetryDelay,
		message: "The host was brought back to what it was.", next: "The operator looks at it again.",
	}
}

func (s *scope) runRollback(ctx context.Context) *obstacle {
	s.session.waiting = ""
	line, err := s.run(ctx, verb.Rollback)
	if err != nil {
		return s.hostFailed(v1alpha1.ConditionReady, err)
	}
	s.session.spec, s.session.applied = "", ""
	if line.Type == verb.TypeResult && len(line.Result.Plan.Needs) > 0 {
		// Its certificate has expired meanwhile: what the host was before could not be brought up, so forward it goes again.
		s.instance.Status.FailedChange.PreviousDigest = ""
		return &obstacle{
			condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonChangeFailedNotRolledBack, outcome: wait, keepsTurn: true, after: firstRetryDelay,
			message: "What the host was before needs " + string(line.Result.Plan.Needs[0]) + " to be brought back.",
			next:    "The operator tries the change again, which brings the host what it needs.",
		}
	}
	if line.Type == verb.TypeRebooting {
		s.emit(hostRestarts(s.instance))
		return s.beginRestart()
	}
	s.session.facts = line.Result.Facts
	return nil
}

// checkRolledBack has the agent prove that the node works again, by the checks of what it was brought back to.
func (s *scope) checkRolledBack(ctx context.Context, node *corev1.Node) *obstacle {
	line, err := s.run(ctx, verb.Verify)
	if err != nil {
		return s.hostFailed(v1alpha1.ConditionReady, err)
	}
	for _, check := range line.Result.Checks {
		if !check.Passed && !check.Advisory {
			return &obstacle{condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonChecksFailed, outcome: changeFailed, message: check.Name + ": " + check.Message}
		}
	}
	if message := s.notReady(node, line.Result.KubeletStarted); message != "" {
		return s.awaitReady(node, "the Node to be Ready again", message)
	}
	return nil
}

// notRolledBack puts into words that the way back is not at its end.
func (s *scope) notRolledBack(o *obstacle) *obstacle {
	if !o.outcome.isFailure() {
		return o
	}
	failed := s.instance.Status.FailedChange
	o.message = "The change has failed (" + failed.Message + "), and so has the way back so far: " + o.message
	o.reason, o.outcome, o.keepsTurn = v1alpha1.ReasonChangeFailedNotRolledBack, tryAgain, true
	o.next = "The operator tries again to bring the host back to what it was. The message says what to look at on the host."
	return o
}
