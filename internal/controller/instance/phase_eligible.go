package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// eligible is the phase that asks nobody but the cluster.
type eligible struct {
	line  support.ReleaseLine
	turn  *drain.Turn
	nodes nodes.Nodes
}

// run refuses what can be refused without a connection: a cluster that cannot have Windows nodes, a Machine that cannot
// become one, and a node in service whose Windows a new host may not have. The facts of the cluster and the Node are
// watched, so nothing is asked again.
func (p eligible) run(ctx context.Context, s *scope.Scope) *result.Result {
	node, err := servingNode(ctx, s, p.nodes)
	if err != nil {
		return result.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	decision := p.line.SupportCluster(s.Cluster)
	if decision.Allowed && s.OfMachine() {
		decision = support.Machine(s.Cluster, s.Instance.Spec.Source.Machine.Name)
	}
	if decision.Allowed {
		return p.checkBuild(s, node)
	}
	next := "Nothing is sent to the host. The operator continues when the cluster is supported."
	if decision.Reason == v1alpha1.ReasonMachineNameTooLong {
		next = "Nothing is sent to the host. Delete the Machine and make a MachineSet with a shorter name."
	}
	return refuseHost(s, node, &result.Result{
		Condition: v1alpha1.ConditionSupported, Reason: decision.Reason, Outcome: result.NeedsAdministrator,
		Message: decision.Message, Next: next,
	})
}

// checkBuild refuses to change or replace a node in service if a new host with its Windows would be refused. Only the
// report of a node that is Ready is current. A requested restart is not refused, because an update of Windows needs it,
// and neither is a new key.
func (p eligible) checkBuild(s *scope.Scope, node *corev1.Node) *result.Result {
	if node == nil || !nodeidentity.Ready(node) || s.OnlyKeyDiffers {
		return nil
	}
	known, replaced := s.Instance.Status.SpecDigest != "", p.turn.Replaced(s, node)
	if known && !replaced && (nodes.RebootWanted(node) || s.Instance.Status.RequestedReboot != nil) {
		return nil
	}
	decision := p.line.SupportNode(node.Status.NodeInfo, s.Cluster)
	if decision.Allowed {
		return nil
	}
	return refuseHost(s, node, &result.Result{
		Condition: v1alpha1.ConditionSupported, Reason: decision.Reason, Outcome: result.NeedsAdministrator,
		Replaces: replaced && (known || nodes.IsOlder(node)),
		Message:  decision.Message, Next: buildRemedy(s, replaced),
	})
}

// buildRemedy returns the next action for a node in service whose Windows a new host may not have.
func buildRemedy(s *scope.Scope, replaced bool) string {
	const kept = "The node is neither changed nor replaced. "
	switch {
	case replaced:
		return kept + "Give its MachineSet an image with a supported build, or update Windows on the host. The operator then replaces the Machine."
	case s.OfMachine():
		return kept + "Update Windows on the host; or give its MachineSet an image with a supported build, and delete the Machine."
	}
	return kept + "Update Windows on the host; the operator then continues."
}
