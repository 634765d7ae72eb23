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
	// awayLimit is the maximum time that a host may take to restart before the host counts as unreachable.
	awayLimit = 15 * time.Minute
	// firstRebootPoll and lastRebootPoll are the shortest and the longest interval between checks of a restarting
	// host. The interval doubles until it reaches lastRebootPoll.
	firstRebootPoll = 500 * time.Millisecond
	lastRebootPoll  = 2 * time.Second
	// sameBootLimit is the maximum time that a host may keep its boot ID after the agent reported a restart.
	// After that, the operator runs the agent again, because the host has not restarted.
	sameBootLimit = 2 * time.Minute
)

// Failed returns the result of failed work on the host.
func (s *Scope) Failed(condition string, err error) *result.Result {
	s.Session.Spec = ""
	return s.Host.Failed(condition, err)
}

// StillRestarting returns the wait for a restarting host, or nil if the host is not restarting or exceeds
// awayLimit.
func (s *Scope) StillRestarting() *result.Result {
	since := s.Instance.Status.RestartStartedAt
	if since == nil || s.Clock.Since(since.Time) > awayLimit {
		return nil
	}
	return s.awaitHost()
}

// AnswersWhileRestarting returns the wait for a restarting host that responds over SSH but runs no agent command.
// The host may be shutting down, starting, or faulty. For any other host, the given result is returned.
func (s *Scope) AnswersWhileRestarting(o *result.Result) *result.Result {
	restarting := s.StillRestarting()
	if restarting == nil {
		return o
	}
	restarting.Message += " It answers over SSH, but the agent on it does not: " + o.Message
	return restarting
}

// AwaitRestart waits while a host that must restart still has the old boot ID: a command at that time would be
// lost. The wait ends when the host has restarted, or when sameBootLimit has passed.
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

// BeginRestart records that the agent reported a restart, and closes the connection.
func (s *Scope) BeginRestart() *result.Result {
	s.Host.Close()
	s.Instance.Status.RestartStartedAt = ptr.To(metav1.NewTime(s.Clock.Now()))
	return s.awaitHost()
}

// awaitHost counts the checks of a restarting host, and returns the wait for the next check.
func (s *Scope) awaitHost() *result.Result {
	s.Session.Waiting = ""
	s.Session.RestartLooks++
	return awaitReboot(s.Session.RestartLooks)
}

// awaitReboot returns the wait for the next check of a restarting host.
func awaitReboot(looks int) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionPrepared, Reason: v1alpha1.ReasonRebooting, Outcome: result.Wait, KeepsTurn: true,
		After:   min(firstRebootPoll<<min(looks-1, 8), lastRebootPoll),
		Message: "The host restarts.",
		Next: fmt.Sprintf("The operator waits until the host has a new boot id, at most %d minutes.",
			int(awayLimit.Minutes())),
	}
}
