package instance

import (
	"cmp"
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// leaveAlone stops: the source wants neither host nor Node touched. What the operator held is let go, and nothing is written but the
// status; the source tells of it by an event.
func (r *Reconciler) leaveAlone(ctx context.Context, s *scope) *obstacle {
	r.letGo(s)
	if o := cmp.Or(s.undrain(ctx), s.leaveGate(ctx)); o != nil {
		return o
	}
	s.instance.Status.Step = nil
	return unmanaged(s.instance)
}

// undrain takes a node into service again that was being drained when an administrator wanted it left alone. One whose Machine goes is left to
// whoever deletes it.
func (s *scope) undrain(ctx context.Context) *obstacle {
	reason := s.instance.Spec.DesiredStateReason
	held, err := s.Gate.Holds(ctx, s.instance.Name)
	if err != nil || !held || reason == v1alpha1.ReasonMachineDeleting || reason == v1alpha1.ReasonMachineFailed {
		return nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "read the Node", err)
	}
	return s.standAside(ctx, node)
}

// unmanaged says why a host is left alone, and until when.
func unmanaged(instance *v1alpha1.WindowsInstance) *obstacle {
	machine := machineName(instance.Spec.Source)
	o := &obstacle{condition: v1alpha1.ConditionReady, reason: instance.Spec.DesiredStateReason, outcome: leftAlone}
	switch o.reason {
	case v1alpha1.ReasonMachineDeleting:
		o.message = "The Machine API deletes Machine " + machine + " and drains its node: the operator leaves host and Node alone."
		o.next = "Nothing is to be done: this instance goes when the Machine is gone. If that lasts, see which pods of the node cannot be evicted."
	case v1alpha1.ReasonMachineFailed:
		o.message = "Machine " + machine + " is in phase Failed: its host is not configured."
		o.next = "See what the Machine says with oc describe, and delete it: its MachineSet makes another. A MachineHealthCheck does so by itself."
	default:
		if o.reason == "" {
			o.reason = v1alpha1.ReasonMachineIgnored
		}
		o.message = "Machine " + machine + " is to be left alone: host and Node stay as they are, and nobody watches over them."
		o.next = "To have the host managed again, take the label " + v1alpha1.LabelIgnore + " from the Machine, and give it the label " +
			v1alpha1.LabelMachineOSID + "=" + v1alpha1.MachineOSIDWindows + "."
	}
	return o
}

// letGo drops what is held for a host that is no longer worked on: its connection, and what was learnt over it.
func (r *Reconciler) letGo(s *scope) {
	if s.connection != nil {
		r.Hosts.Release(s.connection)
		s.connection = nil
	}
	s.session.forgetHost()
	s.session.attempts, s.session.waiting = 0, ""
	r.Hosts.Close(s.instance.Name)
}

// superseded reports whether something else is wanted of a Machine's host than what this reconcile works on: its Machine is being deleted,
// say, or the instance was made again, for another host perhaps. Work on other hosts goes on to where it would stop anyway.
func (r *Reconciler) superseded(ctx context.Context, instance *v1alpha1.WindowsInstance) bool {
	if instance.Spec.Source.Machine == nil {
		return false
	}
	present := r.present(ctx, instance)
	return present.UID != instance.UID ||
		present.Generation > instance.Generation && present.Spec.DesiredState != instance.Spec.DesiredState
}

// present is the instance as it is in memory; as it was read when it is not there: the phases find out for themselves.
func (r *Reconciler) present(ctx context.Context, instance *v1alpha1.WindowsInstance) *v1alpha1.WindowsInstance {
	present := &v1alpha1.WindowsInstance{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(instance), present); err != nil {
		return instance
	}
	return present
}

// standBack ends a reconcile that was superseded. What it learnt is kept, unless it is of an earlier instance; what was cut off is no
// failure. The change that superseded it has asked for the next reconcile.
func (r *Reconciler) standBack(ctx context.Context, s *scope, instance *v1alpha1.WindowsInstance) error {
	r.letGo(s)
	if r.present(ctx, instance).UID != instance.UID {
		return nil
	}
	s.instance.Status.Step = nil
	return errors.Join(r.Gate.Release(ctx, instance.Name), s.patchStatus(ctx))
}
