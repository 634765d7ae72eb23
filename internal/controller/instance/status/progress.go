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

// progressInterval is how old the written status must be at least before progress is written: as often as a person looks
// who follows one host.
const progressInterval = 5 * time.Second

// longestSilence is how old the written status of a host may become while others use up what Pace allows.
const longestSilence = time.Minute

// Progress shows the step of a running job: at once if it is one of the operator's own that is shown to wait, and else as often as
// people look.
func (w Writer) Progress(ctx context.Context, s *scope.Scope, running *hostjobs.Progress) error {
	if running.Key.Kind == hostjobs.KindCommit {
		return nil // of a host that is as it should be
	}
	now := w.Clock.Now()
	step := running.Step
	if step.Name == "" { // a connection is being made
		reachable := meta.FindStatusCondition(s.Instance.Status.Conditions, v1alpha1.ConditionReachable)
		if now.Sub(running.Began) < running.Show.Quiet || reachable != nil && reachable.Status != metav1.ConditionUnknown {
			return nil
		}
		w.describe(s, running.Show)
		return w.patch(ctx, s)
	}
	w.setStep(s, step)
	waits := step.Waits && isNewStep(s.Stored.Status.Step, s.Instance.Status.Step)
	due := progressDue(s.Session.LastWrite, now) && progressDue(running.Began, now)
	if !waits && (!due || !w.Pace.allows(w.Clock) && now.Sub(s.Session.LastWrite) < longestSilence) {
		return nil
	}
	w.describe(s, running.Show)
	s.Instance.Status.NextAction = "The operator waits for the step " + step.Name + " on the host."
	return w.patch(ctx, s)
}

// isNewStep reports whether a step is not the one that is written.
func isNewStep(written, step *v1alpha1.StepStatus) bool {
	return written == nil || written.Name != step.Name
}

func (w Writer) setStep(s *scope.Scope, present hostjobs.Step) {
	if present.Name == "" {
		return
	}
	step := &v1alpha1.StepStatus{Name: present.Name, Index: int32(present.Index), Total: int32(present.Of), Detail: present.Detail, //nolint:gosec // a plan has few steps
		StartedAt: metav1.NewTime(w.Clock.Now())}
	if current := s.Instance.Status.Step; current != nil && current.Name == present.Name {
		step.StartedAt = current.StartedAt
	}
	s.Instance.Status.Step = step
}

// describe gives the status the summary of work in progress.
func (w Writer) describe(s *scope.Scope, o *result.Result) {
	s.Instance.Status.Summary, s.Instance.Status.NextAction = v1alpha1.ReasonInProgress, o.Next
	if s.Instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
		s.Instance.Status.Summary = v1alpha1.ReasonRemoving
	}
}

// progressDue reports whether progress is written now, when the status was written last at another time.
func progressDue(last, now time.Time) bool { return now.Sub(last) >= progressInterval }

// restarted ends the condition of a host that restarts: what was prepared before must be seen again.
func (w Writer) restarted(s *scope.Scope) {
	meta.SetStatusCondition(&s.Instance.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionPrepared, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonDependencyNotReady,
		Message: "The host was restarted.", LastTransitionTime: metav1.NewTime(w.Clock.Now()),
	})
}
