package status

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// progressInterval is the minimum age of the written status before progress is written, suited to a person
// watching one host.
const progressInterval = 5 * time.Second

// maxProgressAge is the maximum age of the written status of a host while other hosts exhaust the limit of
// ProgressLimiter.
const maxProgressAge = time.Minute

// Progress writes the step of a running job: immediately for a new step of the operator that waits, otherwise at
// most once per progressInterval.
func (w Writer) Progress(ctx context.Context, s *scope.Scope, running *hostjobs.Progress) error {
	if running.Key.Kind == hostjobs.KindCommit {
		return nil // the host is in its desired state
	}
	now := w.Clock.Now()
	step := running.Step
	if step.Name == "" { // connecting
		reachable := meta.FindStatusCondition(s.Instance.Status.Conditions, v1alpha1.ConditionReachable)
		if now.Sub(running.Began) < running.Show.StatusDelay || reachable != nil && reachable.Status != metav1.ConditionUnknown {
			return nil
		}
		w.setProgressSummary(s, running.Show)
		return w.patchStatus(ctx, s)
	}
	w.setStep(s, step)
	waits := step.Waits && isNewStep(s.Stored.Status.Step, s.Instance.Status.Step)
	due := isProgressDue(s.Session.LastWrite, now) && isProgressDue(running.Began, now)
	if !waits && (!due || !w.ProgressLimiter.tryAccept(w.Clock) && now.Sub(s.Session.LastWrite) < maxProgressAge) {
		return nil
	}
	w.setProgressSummary(s, running.Show)
	s.Instance.Status.NextAction = "The operator waits for the step " + step.Name + " on the host."
	return w.patchStatus(ctx, s)
}

// isNewStep reports whether a step differs from the written step.
func isNewStep(written, step *v1alpha1.StepStatus) bool {
	return written == nil || written.Name != step.Name
}

func (w Writer) setStep(s *scope.Scope, present hostjobs.Step) {
	if present.Name == "" {
		return
	}
	step := &v1alpha1.StepStatus{Name: present.Name, Index: int32(present.Index), Total: int32(present.Total), Detail: present.Detail, //nolint:gosec // a plan has few steps
		StartedAt: metav1.NewTime(w.Clock.Now())}
	if current := s.Instance.Status.Step; current != nil && current.Name == present.Name {
		step.StartedAt = current.StartedAt
	}
	s.Instance.Status.Step = step
}

// setProgressSummary sets the summary and the next action for work in progress.
func (w Writer) setProgressSummary(s *scope.Scope, o *result.Result) {
	s.Instance.Status.Summary, s.Instance.Status.NextAction = v1alpha1.ReasonInProgress, o.NextAction
	if s.Instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
		s.Instance.Status.Summary = v1alpha1.ReasonRemoving
	}
}

// isProgressDue reports whether progress must be written now, after the last write.
func isProgressDue(last, now time.Time) bool { return now.Sub(last) >= progressInterval }

// resetPrepared resets the condition Prepared of a restarted host, because the preparation must be verified again.
func (w Writer) resetPrepared(s *scope.Scope) {
	meta.SetStatusCondition(&s.Instance.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionPrepared, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonDependencyNotReady,
		Message: "The host was restarted.", LastTransitionTime: metav1.NewTime(w.Clock.Now()),
	})
}
