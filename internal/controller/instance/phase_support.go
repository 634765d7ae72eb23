package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// supported is the phase that refuses hosts which this version does not support.
type supported struct {
	line support.ReleaseLine
}

// run refuses a host that cannot be a node of this cluster before it is changed.
func (p supported) run(_ context.Context, s *scope.Scope) *obstacle.Obstacle {
	decision := p.line.SupportHost(s.Session.Facts.System, s.Cluster)
	if decision.Allowed {
		s.Pass(v1alpha1.ConditionSupported, decision.Message)
		return nil
	}
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionSupported, Reason: decision.Reason, Outcome: obstacle.NeedsAdministrator,
		After:   obstacle.HostRecheck,
		Message: decision.Message,
		Next:    obstacle.Untouched + "Use a supported Windows version and network, or take the host out of its source.",
	}
}
