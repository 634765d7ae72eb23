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
)

// unmanagedPhase is the phase that ends the management of a host and its Node.
type unmanagedPhase struct {
	disruptor *drain.Disruptor
	nodes     nodes.Nodes
}

// reconcile ends the reconcile, because the source requests that neither the host nor the Node is changed. The
// connection and the slot are released, and only the status is written. The source emits an event.
func (p unmanagedPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	s.Host.Close()
	s.Session.Attempts, s.Session.WaitName = 0, ""
	node, o := p.getCordonedNode(ctx, s)
	if o != nil {
		return o
	}
	if o := p.cancelDrain(ctx, s, node); o != nil {
		return o
	}
	s.RequestSlotRelease()
	s.Instance.Status.Step = nil
	o = unmanagedResult(s.Instance)
	if node != nil && !drain.IsUndisrupted(s, node) {
		o.Message += " The operator had begun to change the host, so its Node remains unschedulable."
	}
	return o
}

// getCordonedNode returns the Node of the instance if the operator has cordoned it; nil for any other Node. The Node of
// a Machine that is being deleted or has failed is left to the Machine API. The cordon is read from the Node, because
// the disruption slot may already be released.
func (p unmanagedPhase) getCordonedNode(ctx context.Context, s *scope.Scope) (*corev1.Node, *result.Result) {
	reason := s.Instance.Spec.DesiredStateReason
	if reason == v1alpha1.ReasonMachineDeleting || reason == v1alpha1.ReasonMachineFailed {
		return nil, nil
	}
	node, err := p.nodes.Get(ctx, s.Instance)
	if err != nil {
		return nil, result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !nodes.IsCordoned(node) || !nodeidentity.IsBound(s.Instance, node) {
		return nil, nil
	}
	return node, nil
}

// cancelDrain uncordons a node that was being drained when an administrator made it unmanaged.
func (p unmanagedPhase) cancelDrain(ctx context.Context, s *scope.Scope, node *corev1.Node) *result.Result {
	if node == nil {
		return nil
	}
	return p.disruptor.UncordonAndRelease(ctx, s, node)
}

// unmanagedResult returns the result for an unmanaged host, with the reason and the next action.
func unmanagedResult(instance *v1alpha1.WindowsInstance) *result.Result {
	machine := nodes.MachineName(instance.Spec.Source)
	o := &result.Result{Condition: v1alpha1.ConditionReady, Reason: instance.Spec.DesiredStateReason,
		Outcome: result.Unmanaged}
	switch o.Reason {
	case v1alpha1.ReasonMachineDeleting:
		o.Message = "The Machine API deletes Machine " + machine +
			" and drains its node: the operator does not change the host or the Node."
		o.NextAction = "No action is needed: this WindowsInstance is deleted with the Machine. If the deletion takes long, check which pods of the node cannot be evicted."
	case v1alpha1.ReasonMachineFailed:
		o.Message = "Machine " + machine + " is in phase Failed: its host is not configured."
		o.NextAction = "Check the Machine with oc describe, and delete it: its MachineSet creates a replacement. A MachineHealthCheck does so automatically."
	default:
		if o.Reason == "" {
			o.Reason = v1alpha1.ReasonMachineIgnored
		}
		o.Message = "Machine " + machine +
			" is ignored: the operator does not change or monitor the host and its Node."
		o.NextAction = "To manage the host again, remove the label " + v1alpha1.LabelIgnore +
			" from the Machine, and add the label " +
			v1alpha1.LabelMachineOSID + "=" + v1alpha1.MachineOSIDWindows + "."
	}
	return o
}
