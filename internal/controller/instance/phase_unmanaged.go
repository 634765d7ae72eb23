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

// unmanaged is the phase that leaves host and Node alone.
type unmanaged struct {
	turn  *drain.Turn
	nodes nodes.Nodes
}

// run stops: the source wants neither host nor Node touched. What the operator held is let go, and nothing is written
// but the status; the source tells of it by an event.
func (p unmanaged) run(ctx context.Context, s *scope.Scope) *result.Result {
	s.Host.Close()
	s.Session.Attempts, s.Session.Waiting = 0, ""
	node, o := p.cordonedNode(ctx, s)
	if o != nil {
		return o
	}
	if o := p.undrain(ctx, s, node); o != nil {
		return o
	}
	s.LeaveGate()
	s.Instance.Status.Step = nil
	o = unmanagedObstacle(s.Instance)
	if node != nil && !drain.Undisturbed(s, node) {
		o.Message += " The operator had begun to change the host, so its Node stays unschedulable."
	}
	return o
}

// cordonedNode returns the Node of the instance if the operator has cordoned it; nil for any other, and for one whose
// Machine goes: that is left to whoever deletes it. The Node says so: the disruption slot may be released already.
func (p unmanaged) cordonedNode(ctx context.Context, s *scope.Scope) (*corev1.Node, *result.Result) {
	reason := s.Instance.Spec.DesiredStateReason
	if reason == v1alpha1.ReasonMachineDeleting || reason == v1alpha1.ReasonMachineFailed {
		return nil, nil
	}
	node, err := p.nodes.Of(ctx, s.Instance)
	if err != nil {
		return nil, result.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !nodes.Cordoned(node) || !nodeidentity.Bound(s.Instance, node) {
		return nil, nil
	}
	return node, nil
}

// undrain takes a node into service again that was being drained when an administrator wanted it left alone.
func (p unmanaged) undrain(ctx context.Context, s *scope.Scope, node *corev1.Node) *result.Result {
	if node == nil {
		return nil
	}
	return p.turn.StandAside(ctx, s, node)
}

// unmanagedResult says why a host is left alone, and until when.
func unmanagedObstacle(instance *v1alpha1.WindowsInstance) *result.Result {
	machine := nodes.MachineName(instance.Spec.Source)
	o := &result.Result{Condition: v1alpha1.ConditionReady, Reason: instance.Spec.DesiredStateReason,
		Outcome: result.LeftAlone}
	switch o.Reason {
	case v1alpha1.ReasonMachineDeleting:
		o.Message = "The Machine API deletes Machine " + machine +
			" and drains its node: the operator leaves host and Node alone."
		o.Next = "No action is needed: this WindowsInstance is deleted when the Machine is gone. If the deletion takes long, check which pods of the node cannot be evicted."
	case v1alpha1.ReasonMachineFailed:
		o.Message = "Machine " + machine + " is in phase Failed: its host is not configured."
		o.Next = "Check the Machine with oc describe, and delete it: its MachineSet creates a replacement. A MachineHealthCheck does so automatically."
	default:
		if o.Reason == "" {
			o.Reason = v1alpha1.ReasonMachineIgnored
		}
		o.Message = "Machine " + machine +
			" is ignored: the host and its Node stay as they are, and the operator does not monitor them."
		o.Next = "To have the host managed again, take the label " + v1alpha1.LabelIgnore +
			" from the Machine, and give it the label " +
			v1alpha1.LabelMachineOSID + "=" + v1alpha1.MachineOSIDWindows + "."
	}
	return o
}
