package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// eligible is the phase that asks nobody but the cluster.
type eligible struct {
	line support.ReleaseLine
}

// run refuses what can be refused without a connection: a cluster that cannot have Windows nodes, and a Machine that
// cannot become one. The facts of the cluster are watched, so nothing is asked again.
func (p eligible) run(_ context.Context, s *scope.Scope) *obstacle.Obstacle {
	decision := p.line.SupportCluster(s.Cluster)
	if decision.Allowed && s.OfMachine() {
		decision = support.Machine(s.Cluster, s.Instance.Spec.Source.Machine.Name)
	}
	if decision.Allowed {
		return nil
	}
	next := "Nothing is sent to the host. The operator goes on by itself when the cluster is supported."
	if decision.Reason == v1alpha1.ReasonMachineNameTooLong {
		next = "Nothing is sent to the host. Delete the Machine and make a MachineSet with a shorter name."
	}
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionSupported, Reason: decision.Reason, Outcome: obstacle.NeedsAdministrator,
		Message: decision.Message, Next: next,
	}
}
