package removal

import (
	"context"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// findOrphanedNode finds the Node of a host after the former instance was deleted manually. The replacement instance
// is removed before the node name is known, and without this search the Node would remain. The Node is drained like
// any other before the host is restored.
func (r *Removal) findOrphanedNode(ctx context.Context, s *scope.Scope) *result.Result {
	if s.NodeName() != "" {
		return nil
	}
	addresses := []string{s.Host.Connection.Address()}
	if host := s.Instance.Status.Host; host != nil {
		addresses = append(addresses, host.Addresses...)
	}
	node, err := r.Nodes.FindByHost(ctx, *s.Instance.Status.HostKey, addresses)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "find the Node of the host", err)
	}
	if node == nil {
		return nil
	}
	instances, err := r.Nodes.Instances(ctx, s)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "list WindowsInstances", err)
	}
	if slices.ContainsFunc(instances, func(other v1alpha1.WindowsInstance) bool {
		return other.Status.NodeRef != nil && other.Status.NodeRef.Name == node.Name
	}) {
		return nil // the Node is removed with the other instance
	}
	s.Instance.Status.NodeRef = &v1alpha1.NodeReference{Name: node.Name, UID: string(node.UID), Confirmed: true}
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonRemoving, Outcome: result.Wait, HoldsSlot: true, RequeueAfter: time.Second,
		Message:    "The host is Node " + node.Name + ", whose previous WindowsInstance was deleted.",
		NextAction: "The operator drains the node, restores the host, and deletes the Node.",
	}
}
