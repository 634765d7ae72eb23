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
	// rebootTimeout is the maximum time that a host may take to restart before the host counts as unreachable.
	rebootTimeout = 15 * time.Minute
	// minRebootPollInterval and maxRebootPollInterval are the shortest and the longest interval between checks of a
	// restarting host. The interval doubles until it reaches maxRebootPollInterval.
	minRebootPollInterval = 500 * time.Millisecond
	maxRebootPollInterval = 2 * time.Second
	// bootIDTimeout is the maximum time that a host may keep its boot ID after the agent reported a restart.
	// After that, the operator runs the agent again, because the host has not restarted.
	bootIDTimeout = 2 * time.Minute
)

// HandleFailure returns the result of failed work on the host.
func (s *Scope) HandleFailure(condition string, err error) *result.Result {
	s.Session.WaitSpecDigest = ""
	return s.Host.HandleFailure(condition, err)
}

// AwaitHostReturn returns the wait for a restarting host, or nil if the host is not restarting or exceeds
// rebootTimeout.
func (s *Scope) AwaitHostReturn() *result.Result {
	since := s.Instance.Status.RestartStartedAt
	if since == nil || s.Clock.Since(since.Time) > rebootTimeout {
		return nil
	}
	return s.awaitHost()
}

// AwaitAgentReturn returns the wait for a restarting host that responds over SSH but runs no agent command.
// The host may be shutting down, starting, or faulty. For any other host, the given result is returned.
func (s *Scope) AwaitAgentReturn(o *result.Result) *result.Result {
	restarting := s.AwaitHostReturn()
	if restarting == nil {
		return o
	}
	restarting.Message += " Its SSH server responds, but the agent does not: " + o.Message
	return restarting
}

// AwaitRestart waits while a host that must restart still has the old boot ID: a command at that time would be
// lost. The wait ends when the host has restarted, or when bootIDTimeout has passed.
func (s *Scope) AwaitRestart() *result.Result {
	since := s.Instance.Status.RestartStartedAt
	if since == nil {
		return nil
	}
	before := s.Instance.Status.Host != nil && s.Instance.Status.Host.BootID == s.Host.Facts.System.BootID
	if before && s.Clock.Since(since.Time) < bootIDTimeout {
		s.Host.Close()
		return s.awaitHost()
	}
	s.Session.RebootPolls, s.Instance.Status.RestartStartedAt = 0, nil
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
	s.Session.WaitName = ""
	s.Session.RebootPolls++
	return awaitReboot(s.Session.RebootPolls)
}

// awaitReboot returns the wait for the next check of a restarting host.
func awaitReboot(looks int) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionPrepared, Reason: v1alpha1.ReasonRebooting, Outcome: result.Wait, HoldsSlot: true,
		RequeueAfter: min(minRebootPollInterval<<min(looks-1, 8), maxRebootPollInterval),
		Message:      "The host restarts.",
		NextAction: fmt.Sprintf("The operator waits for a new boot ID of the host, at most %d minutes.",
			int(rebootTimeout.Minutes())),
	}
}
