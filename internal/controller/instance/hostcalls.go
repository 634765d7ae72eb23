package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/text"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// progressInterval is the least time between two writes of progress to the API, so that fifty hosts at work do not load it.
const progressInterval = time.Second

// run has the agent do a verb and shows its steps in the status while it does.
func (s *scope) run(ctx context.Context, name verb.Name, arguments ...string) (verb.Line, error) {
	last, err := s.connection.Run(ctx, s.session.agent, name, arguments, func(line verb.Line) {
		if line.Type != verb.TypeStep || line.Step == nil {
			return
		}
		step := boundedStep(*line.Step)
		if step.State == verb.StepDone {
			stepsDone.WithLabelValues(stepKind(step.Name)).Inc()
			return
		}
		s.progress(ctx, step.Name, step.Index, step.Of, step.Detail)
	})
	if last.Type != verb.TypeRebooting {
		s.instance.Status.Step = nil // a restart goes on after its verb; no other step does
	}
	if err == nil {
		err = complete(name, last)
	}
	if last.Result != nil {
		boundFacts(last.Result.Facts)
	}
	return last, err
}

// complete reports whether an answer brings what its verb must bring. The host is not trusted to send what the agent would.
func complete(name verb.Name, last verb.Line) error {
	if last.Type == verb.TypeRebooting && slices.Contains([]verb.Name{verb.Apply, verb.Remove, verb.Rollback, verb.Reboot}, name) {
		return nil
	}
	r := last.Result
	ok := r != nil
	switch {
	case !ok:
	case name == verb.Facts:
		ok = r.Facts != nil
	case name == verb.Plan:
		ok = r.Plan != nil
	case name == verb.Apply, name == verb.Rollback, name == verb.Renew:
		ok = r.Facts != nil && r.Plan != nil
	}
	if !ok {
		return fmt.Errorf("the agent's answer to %s is incomplete: it is not the operator's agent, or of another version", name)
	}
	return nil
}

// progress shows what is being done right now.
func (s *scope) progress(ctx context.Context, name string, index, of int, detail string) {
	now := s.Clock.Now()
	current := s.instance.Status.Step
	step := &v1alpha1.StepStatus{Name: name, Index: int32(index), Of: int32(of), Detail: detail, StartedAt: metav1.NewTime(now)} //nolint:gosec // a plan has few steps
	if current != nil && current.Name == name {
		step.StartedAt = current.StartedAt
	}
	s.instance.Status.Step = step
	if now.Sub(s.session.lastProgress) < progressInterval {
		return
	}
	s.session.lastProgress = now
	s.instance.Status.Summary = v1alpha1.ReasonInProgress
	if s.instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
		s.instance.Status.Summary = v1alpha1.ReasonRemoving
	}
	s.instance.Status.NextAction = "The operator waits for the step " + name + " on the host."
	if err := s.patchStatus(ctx); err != nil {
		log.FromContext(ctx).Info("progress could not be written", "error", err.Error())
	}
}

// transferProgress shows bytes on their way, and how fast they go.
func (s *scope) transferProgress(ctx context.Context, name string) func(done, total int64) {
	begin, first := s.Clock.Now(), int64(-1)
	return func(done, total int64) {
		if first < 0 {
			first = done // an upload that goes on where it was cut does not begin at zero
		}
		s.progress(ctx, name, 0, 0, transferred(done, total, done-first, s.Clock.Since(begin)))
	}
}

// transferred says how far a transfer is that has sent some bytes in some time.
func transferred(done, total, sent int64, in time.Duration) string {
	text := fmt.Sprintf("%.1f of %.1f MB", float64(done)/1e6, float64(total)/1e6)
	if in < progressInterval {
		return text
	}
	return fmt.Sprintf("%s, %.1f MB/s", text, float64(sent)/1e6/in.Seconds())
}

// hostFailed forgets what was learnt of a host where something has failed, as far as it may be true no more, and says what stands in the way.
func (s *scope) hostFailed(condition string, err error) *obstacle {
	s.session.spec = ""
	var failure *verb.Failure
	if errors.As(err, &failure) {
		// The agent's facts may have changed with what it did before it failed.
		s.session.applied, s.session.facts = "", nil
	} else {
		s.session.forgetHost()
		s.Hosts.Close(s.instance.Name)
	}
	return hostObstacle(condition, err)
}

// hostObstacle puts a failure on the host into the words of the status.
func hostObstacle(condition string, err error) *obstacle {
	o := &obstacle{
		condition: condition, reason: v1alpha1.ReasonStepFailed, message: text.Shortened(err.Error(), longestMessage), err: err,
		next: "The operator tries again; what was done already is not done twice.",
	}
	var failure *verb.Failure
	var failed *remote.Error
	switch {
	case errors.As(err, &failure):
		o.reason, o.outcome = string(knownReason(failure.Reason)), changeFailed
		switch failure.Reason {
		case verb.ReasonAgentBusy: // a verb of an earlier connection, or of another operator, is at work: the host is not as it was
			o.outcome, o.keepsTurn = tryAgain, true
		case verb.ReasonSpecUnknown:
			o.outcome = tryAgain
		}
	case errors.As(err, &failed):
		o.failedBy(err, failed)
	}
	return o
}
