package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// identifyPhase is the phase that refuses a host other than the host of the instance's Node, before the operator rolls
// back, restarts or configures the host.
type identifyPhase struct {
	nodes nodes.Nodes
}

// reconcile compares the facts of the host with the Node of the instance. The host name is checked later, with the
// claim.
func (p identifyPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	facts := s.Host.Facts
	if nodeidentity.ConfirmedName(s.Instance) == "" || facts.NodeName == s.NodeName() ||
		facts.NodeName == "" && !nodeidentity.HasOtherMachine(s.Instance) {
		return nil
	}
	instances, err := p.nodes.Instances(ctx, s)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "list WindowsInstances", err)
	}
	node, err := p.nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "read the Node", err)
	}
	reached := nodeidentity.ReachedHost{MachineID: facts.System.MachineID, NodeName: facts.NodeName}
	message := nodeidentity.HostMismatch(s.Instance, reached, node, instances)
	if message == "" {
		return nil
	}
	s.Host.Facts = nil // requested again by the next attempt
	return &result.Result{
		Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonHostMismatch, Outcome: result.Blocked,
		RequeueAfter: result.HostRecheckInterval, Message: message,
		NextAction: "Restore the addresses of the hosts, or list the host of Node " + s.NodeName() +
			" at its current address. Until then, this host is not changed.",
	}
}
