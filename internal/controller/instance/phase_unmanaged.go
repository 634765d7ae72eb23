package instance

import (
	"cmp"
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/link"
	"github.com/windows-machine-config/wmco/internal/controller/instance/machines"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/turn"
)

// unmanaged is the phase that leaves host and Node alone.
type unmanaged struct {
	link  *link.Link
	turn  *turn.Turn
	nodes nodes.Nodes
	gate  disruption.Gate
}

// run stops: the source wants neither host nor Node touched. What the operator held is let go, and nothing is written
// but the status; the source tells of it by an event.
func (p unmanaged) run(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	p.link.LetGo(s)
	s.Session.Attempts, s.Session.Waiting = 0, ""
	if o := cmp.Or(p.undrain(ctx, s), p.turn.Leave(ctx, s)); o != nil {
		return o
	}
	s.Instance.Status.Step = nil
	return unmanagedObstacle(s.Instance)
}

// undrain takes a node into service again that was being drained when an administrator wanted it left alone. One whose
// Machine goes is left to whoever deletes it.
func (p unmanaged) undrain(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	reason := s.Instance.Spec.DesiredStateReason
	held, err := p.gate.Holds(ctx, s.Instance.Name)
	if err != nil || !held || reason == v1alpha1.ReasonMachineDeleting || reason == v1alpha1.ReasonMachineFailed {
		return nil
	}
	node, err := p.nodes.Of(ctx, s.Instance)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	return p.turn.StandAside(ctx, s, node)
}

// unmanagedObstacle says why a host is left alone, and until when.
func unmanagedObstacle(instance *v1alpha1.WindowsInstance) *obstacle.Obstacle {
	machine := machines.NameOf(instance.Spec.Source)
	o := &obstacle.Obstacle{Condition: v1alpha1.ConditionReady, Reason: instance.Spec.DesiredStateReason,
		Outcome: obstacle.LeftAlone}
	switch o.Reason {
	case v1alpha1.ReasonMachineDeleting:
		o.Message = "The Machine API deletes Machine " + machine +
			" and drains its node: the operator leaves host and Node alone."
		o.Next = "No action is needed: this WindowsInstance is deleted when the Machine is gone. If the deletion takes long, check which pods of the node cannot be evicted."
	case v1alpha1.ReasonMachineFailed:
		o.Message = "Machine " + machine + " is in phase Failed: its host is not configured."
		o.Next = "See what the Machine says with oc describe, and delete it: its MachineSet makes another. A MachineHealthCheck does so by itself."
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
