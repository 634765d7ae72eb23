package link

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/plan"
)

const (
	// awayLimit is how long a host may take to come back before it counts as unreachable.
	awayLimit = 15 * time.Minute
	// firstRebootPoll and lastRebootPoll are the times between two looks at a host that restarts: the wait doubles between
	// them.
	firstRebootPoll = 500 * time.Millisecond
	lastRebootPoll  = 2 * time.Second
)

// stillRestarting returns the wait for a host that is away because it restarts; nil when it is not, or takes too long.
func (l *Link) stillRestarting(s *scope.Scope) *obstacle.Obstacle {
	since := s.Instance.Status.RestartStartedAt
	if since == nil || l.Clock.Since(since.Time) > awayLimit {
		return nil
	}
	return l.awaitHost(s)
}

// AnswersWhileRestarting returns the wait for a host that answers over SSH but runs no verb: it goes down, or comes up,
// or something is wrong with it, and only time shows which. For any other host it returns the obstacle itself.
func (l *Link) AnswersWhileRestarting(s *scope.Scope, o *obstacle.Obstacle) *obstacle.Obstacle {
	restarting := l.stillRestarting(s)
	if restarting == nil {
		return o
	}
	restarting.Message += " It answers over SSH, but the agent on it does not: " + o.Message
	return restarting
}

// sameBootLimit is how long a host may keep its boot id after it said that it restarts. Then it has not: the agent is
// asked again.
const sameBootLimit = 2 * time.Minute

// AwaitRestart waits while a host that should restart still answers from before the restart: a request at that time
// would be lost. It ends the wait when the host is back, or has not restarted after all.
func (l *Link) AwaitRestart(s *scope.Scope, facts *plan.Facts) *obstacle.Obstacle {
	since := s.Instance.Status.RestartStartedAt
	if since == nil {
		return nil
	}
	before := s.Instance.Status.Host != nil && s.Instance.Status.Host.BootID == facts.System.BootID
	if before && l.Clock.Since(since.Time) < sameBootLimit {
		l.Close(s)
		return l.awaitHost(s)
	}
	s.Session.RestartLooks, s.Instance.Status.RestartStartedAt = 0, nil
	l.Status.Restarted(s)
	return nil
}

// BeginRestart notes that the host has said that it restarts, and lets the connection go.
func (l *Link) BeginRestart(s *scope.Scope) *obstacle.Obstacle {
	l.Close(s)
	s.Instance.Status.RestartStartedAt = ptr.To(metav1.NewTime(l.Clock.Now()))
	return l.awaitHost(s)
}

// awaitHost counts the looks at a host that restarts, and waits for the next one.
func (l *Link) awaitHost(s *scope.Scope) *obstacle.Obstacle {
	s.Session.Waiting = ""
	s.Session.RestartLooks++
	return rebootObstacle(s.Session.RestartLooks)
}

// rebootObstacle returns the wait for the next look at a host that restarts, after so many.
func rebootObstacle(looks int) *obstacle.Obstacle {
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionPrepared, Reason: v1alpha1.ReasonRebooting, Outcome: obstacle.Wait, KeepsTurn: true,
		After:   min(firstRebootPoll<<min(looks-1, 8), lastRebootPoll),
		Message: "The host restarts.",
		Next: fmt.Sprintf("The operator waits until the host has a new boot id, at most %d minutes.",
			int(awayLimit.Minutes())),
	}
}
