package scope

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
)

const (
	// awayLimit is how long a host may take to come back before it counts as unreachable.
	awayLimit = 15 * time.Minute
	// firstRebootPoll and lastRebootPoll are the times between two looks at a host that restarts: the wait doubles between
	// them.
	firstRebootPoll = 500 * time.Millisecond
	lastRebootPoll  = 2 * time.Second
	// sameBootLimit is how long a host may keep its boot ID after it said that it restarts. Then it has not: the agent is
	// asked again.
	sameBootLimit = 2 * time.Minute
)

// Failed returns the result of work on the host that has failed.
func (s *Scope) Failed(condition string, err error) *result.Result {
	s.Session.Spec = ""
	return s.Host.Failed(condition, err)
}

// StillRestarting returns the wait for a host that is away because it restarts; nil when it is not, or takes too long.
func (s *Scope) StillRestarting() *result.Result {
	since := s.Instance.Status.RestartStartedAt
	if since == nil || s.Clock.Since(since.Time) > awayLimit {
		return nil
	}
	return s.awaitHost()
}

// AnswersWhileRestarting returns the wait for a host that answers over SSH but runs no verb: it goes down, or comes up,
// or something is wrong with it, and only time shows which. For any other host it returns the result itself.
func (s *Scope) AnswersWhileRestarting(o *result.Result) *result.Result {
	restarting := s.StillRestarting()
	if restarting == nil {
		return o
	}
	restarting.Message += " It answers over SSH, but the agent on it does not: " + o.Message
	return restarting
}

// AwaitRestart waits while a host that should restart still answers from before the restart: a request at that time
// would be lost. It ends the wait when the host is back, or has not restarted after all.
func (s *Scope) AwaitRestart() *result.Result {
	since := s.Instance.Status.RestartStartedAt
	if since == nil {
		return nil
	}
	before := s.Instance.Status.Host != nil && s.Instance.Status.Host.BootID == s.Host.Facts.System.BootID
	if before && s.Clock.Since(since.Time) < sameBootLimit {
		s.Host.Close()
		return s.awaitHost()
	}
	s.Session.RestartLooks, s.Instance.Status.RestartStartedAt = 0, nil
	s.Restarted = true
	return nil
}

// BeginRestart notes that the host has said that it restarts, and lets the connection go.
func (s *Scope) BeginRestart() *result.Result {
	s.Host.Close()
	s.Instance.Status.RestartStartedAt = ptr.To(metav1.NewTime(s.Clock.Now()))
	return s.awaitHost()
}

// awaitHost counts the looks at a host that restarts, and waits for the next one.
func (s *Scope) awaitHost() *result.Result {
	s.Session.Waiting = ""
	s.Session.RestartLooks++
	return awaitReboot(s.Session.RestartLooks)
}

// awaitReboot returns the wait for the next look at a host that restarts, after so many.
func awaitReboot(looks int) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionPrepared, Reason: v1alpha1.ReasonRebooting, Outcome: result.Wait, KeepsTurn: true,
		After:   min(firstRebootPoll<<min(looks-1, 8), lastRebootPoll),
		Message: "The host restarts.",
		Next: fmt.Sprintf("The operator waits until the host has a new boot id, at most %d minutes.",
			int(awayLimit.Minutes())),
	}
}
