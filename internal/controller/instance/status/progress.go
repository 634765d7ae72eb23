package status

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// progressInterval is how old the written status must be at least before progress is written: as often as a person looks
// who follows one host.
const progressInterval = 5 * time.Second

// longestSilence is how old the written status of a host may become while others use up what Pace allows.
const longestSilence = time.Minute

// Progress shows the present step of a host, of which there are many in a short time, or how far it is. What it leaves
// out a later call shows.
func (w Writer) Progress(ctx context.Context, s *scope.Scope, name string, index, of int, detail string) {
	w.setStep(s, name, index, of, detail)
	now := w.Clock.Now()
	if progressDue(s.Session.LastWrite, now) && (w.Pace.allows(w.Clock) || now.Sub(s.Session.LastWrite) >= longestSilence) {
		w.writeStep(ctx, s)
	}
}

// Step shows a step of the operator's own at once, because no later call shows it.
func (w Writer) Step(ctx context.Context, s *scope.Scope, name, detail string) {
	w.setStep(s, name, 0, 0, detail)
	if isNewStep(s.Stored.Status.Step, s.Instance.Status.Step) || progressDue(s.Session.LastWrite, w.Clock.Now()) {
		w.writeStep(ctx, s)
	}
}

// isNewStep reports whether a step is not the one that is written.
func isNewStep(written, step *v1alpha1.StepStatus) bool {
	return written == nil || written.Name != step.Name || written.Detail != step.Detail
}

// Begin shows a step with what the caller writes next.
func (w Writer) Begin(s *scope.Scope, name string) {
	w.setStep(s, name, 0, 0, "")
	w.describeStep(s)
}

func (w Writer) setStep(s *scope.Scope, name string, index, of int, detail string) {
	step := &v1alpha1.StepStatus{Name: name, Index: int32(index), Of: int32(of), Detail: detail, //nolint:gosec // a plan has few steps
		StartedAt: metav1.NewTime(w.Clock.Now())}
	if current := s.Instance.Status.Step; current != nil && current.Name == name {
		step.StartedAt = current.StartedAt
	}
	s.Instance.Status.Step = step
}

func (w Writer) writeStep(ctx context.Context, s *scope.Scope) {
	w.describeStep(s)
	if err := w.Patch(ctx, s); err != nil {
		log.FromContext(ctx).Info("progress could not be written", "error", err.Error())
	}
}

func (w Writer) describeStep(s *scope.Scope) {
	s.Instance.Status.Summary = v1alpha1.ReasonInProgress
	if s.Instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
		s.Instance.Status.Summary = v1alpha1.ReasonRemoving
	}
	s.Instance.Status.NextAction = "The operator waits for the step " + s.Instance.Status.Step.Name + " on the host."
}

// progressDue reports whether progress is written now, when the status was written last at another time.
func progressDue(last, now time.Time) bool { return now.Sub(last) >= progressInterval }

// Connecting shows that the operator connects to a host of which nothing is known, and how long the host has to answer.
// Of any other host the status keeps what was found last.
func (w Writer) Connecting(ctx context.Context, s *scope.Scope, limit time.Duration) error {
	reachable := meta.FindStatusCondition(s.Instance.Status.Conditions, v1alpha1.ConditionReachable)
	if reachable != nil && reachable.Status != metav1.ConditionUnknown {
		return nil
	}
	s.Instance.Status.Summary = v1alpha1.ReasonInProgress
	s.Instance.Status.NextAction = fmt.Sprintf("The operator connects to %s over SSH. The host has %s to answer.",
		s.Instance.Spec.Address, limit)
	return w.Patch(ctx, s)
}

// Restarted ends the condition of a host that restarts: what was prepared before must be seen again.
func (w Writer) Restarted(s *scope.Scope) {
	meta.SetStatusCondition(&s.Instance.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionPrepared, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotYet,
		Message: "The host was restarted.", LastTransitionTime: metav1.NewTime(w.Clock.Now()),
	})
}

// Transfer shows bytes on their way, and how fast they go.
func (w Writer) Transfer(ctx context.Context, s *scope.Scope, name string) func(done, total int64) {
	begin, first := w.Clock.Now(), int64(-1)
	return func(done, total int64) {
		if first < 0 {
			first = done // an upload that goes on where it was cut does not begin at zero
		}
		w.Progress(ctx, s, name, 0, 0, transferred(done, total, done-first, w.Clock.Since(begin)))
	}
}

// transferred says how far a transfer is that has sent some bytes in some time.
func transferred(done, total, sent int64, in time.Duration) string {
	text := fmt.Sprintf("%.1f of %.1f MB", float64(done)/1e6, float64(total)/1e6)
	if in < time.Second {
		return text
	}
	return fmt.Sprintf("%s, %.1f MB/s", text, float64(sent)/1e6/in.Seconds())
}
