package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// checkEligibility refuses what can be refused without a connection: a cluster that cannot have Windows nodes, and a Machine that cannot
// become one. The facts of the cluster are watched, so nothing is asked again.
func (r *Reconciler) checkEligibility(_ context.Context, s *scope) *obstacle {
	decision := r.Line.SupportCluster(s.cluster)
	if decision.Allowed && s.ofMachine() {
		decision = support.Machine(s.cluster, s.instance.Spec.Source.Machine.Name)
	}
	if decision.Allowed {
		return nil
	}
	next := "Nothing is sent to the host. The operator goes on by itself when the cluster is supported."
	if decision.Reason == v1alpha1.ReasonMachineNameTooLong {
		next = "Nothing is sent to the host. Delete the Machine and make a MachineSet with a shorter name."
	}
	return &obstacle{
		condition: v1alpha1.ConditionSupported, reason: decision.Reason, outcome: needsAdministrator, message: decision.Message, next: next,
	}
}
