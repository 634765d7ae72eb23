package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// supported is the phase that refuses hosts which this version does not support.
type supported struct {
	line support.ReleaseLine
}

// run refuses a host that cannot be a node of this cluster before it is changed.
func (p supported) run(_ context.Context, s *scope.Scope) *obstacle.Obstacle {
	decision := p.line.SupportHost(s.Session.Facts.System, s.Cluster)
	if !decision.Allowed {
		return refused(decision, support.HostRemedy)
	}
	// A host that is a node already is not held up: its changes do not depend on its clock, and the message of Ready tells.
	if ref := s.Instance.Status.NodeRef; ref == nil || ref.UID == "" {
		if clock := support.SupportClock(s.Session.Clock); !clock.Allowed {
			s.Session.Facts = nil // the next attempt asks the host again
			return refused(clock, support.ClockRemedy)
		}
	}
	s.Pass(v1alpha1.ConditionSupported, decision.Message)
	return nil
}

// refused returns the obstacle of a host that cannot be a node as it is.
func refused(decision policy.Decision, remedy string) *obstacle.Obstacle {
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionSupported, Reason: decision.Reason, Outcome: obstacle.NeedsAdministrator,
		After: obstacle.HostRecheck, Message: decision.Message, Next: obstacle.Untouched + remedy,
	}
}
