package identity

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// cloudNodeName returns the name of the machine in the cloud, or the current name of the node.
func (n *NodeNamer) cloudNodeName(ctx context.Context, s *scope.Scope) (string, *result.Result) {
	told := nodename.CloudAnswer{Platform: s.Cluster.Platform}
	if facts := s.Host.Facts.CloudName; facts != nil {
		told.Name, told.Error = facts.Name, facts.Error
	}
	if kept, err := n.canKeepName(ctx, s, told); kept || err != nil {
		if err != nil {
			return "", result.FromAPIError(v1alpha1.ConditionJoined, "read the Node", err)
		}
		return s.NodeName(), nil
	}
	var err error
	if told.Addresses, err = n.machineAddresses(ctx, s); err != nil {
		return "", result.FromAPIError(v1alpha1.ConditionJoined, "read the Machine", err)
	}
	name, decision := nodename.OfCloud(told)
	if decision.Allowed {
		return name, nil
	}
	s.Host.Facts = nil // the next attempt reads the host facts again
	return "", cloudNameResult(decision)
}

// canKeepName reports whether the host keeps its granted node name.
func (n *NodeNamer) canKeepName(ctx context.Context, s *scope.Scope, told nodename.CloudAnswer) (bool, error) {
	ref := s.Instance.Status.NodeRef
	if ref == nil || !ref.Confirmed {
		return false, nil
	}
	if nodename.ShouldKeepName(ref.Name, ref.UID != "", told) {
		return true, nil
	}
	node, err := n.Nodes.GetByName(ctx, ref.Name) // the kubelet may have registered an unbound Node
	return err == nil && nodename.ShouldKeepName(ref.Name, node != nil, told), err
}

// machineAddresses returns the addresses of the instance's Machine; none if there is no Machine.
func (n *NodeNamer) machineAddresses(ctx context.Context, s *scope.Scope) ([]corev1.NodeAddress, error) {
	if !s.HasMachine() {
		return nil, nil
	}
	machine, err := n.Machines.Get(ctx, s.Instance)
	if err != nil || machine == nil {
		return nil, err
	}
	return machine.Status.Addresses, nil
}

func cloudNameResult(decision policy.Decision) *result.Result {
	if decision.Reason == v1alpha1.ReasonNameConflict {
		return &result.Result{
			Condition: v1alpha1.ConditionJoined, Reason: decision.Reason, Message: decision.Message,
			NextAction: result.HostUnchanged +
				"If the Machine is correct, check who has access to the host; to replace the Machine, delete it.",
		}
	}
	return &result.Result{
		Condition: v1alpha1.ConditionSupported, Reason: decision.Reason, Message: decision.Message,
		NextAction: result.HostUnchanged +
			"Allow the host to connect to http://169.254.169.254, in its routes, its firewall and the metadata options of the instance; the operator then continues automatically. " +
			"On AWS and GCP only machines of that cloud can be nodes: remove any other host from its source.",
	}
}
