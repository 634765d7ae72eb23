package removal

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Identify stops before the node is drained if the host at the address is known not to be the host of the Node: the
// host key was accepted later, or another machine presents the same key. Only the host itself can report that it is
// the host of another Node. Later attempts begin with this check, and so do not acquire a disruption slot each time.
// The node of an unreachable host is drained like any other.
func (r *Removal) Identify(ctx context.Context, s *scope.Scope) *result.Result {
	if !NeedsHost(s) || !nodeidentity.HasOtherMachine(s.Instance) && !s.Session.OtherHost {
		return nil
	}
	if s.Host.HasOutcomeExcept(hostjobs.KindConnect, hostjobs.KindFacts) {
		return nil
	}
	if o := r.Connect(ctx, s); o != nil {
		if o.Outcome == result.Working {
			return o
		}
		return nil
	}
	if o := r.Inspect(ctx, s); o != nil {
		return o
	}
	return r.checkHostMismatch(ctx, s)
}

// identifyUnconfigured stops at a host without a ledger that is another machine, while the Node is Ready.
func (r *Removal) identifyUnconfigured(ctx context.Context, s *scope.Scope) *result.Result {
	if !nodeidentity.HasOtherMachine(s.Instance) {
		return nil
	}
	if o := r.Inspect(ctx, s); o != nil {
		return o
	}
	return r.checkHostMismatch(ctx, s)
}

// checkHostMismatch returns a result if the reached host is not the host of the instance's Node. Then nothing on the
// host is restored or deleted, and the Node stays. The host facts must have been read.
func (r *Removal) checkHostMismatch(ctx context.Context, s *scope.Scope) *result.Result {
	instances, err := r.Nodes.Instances(ctx, s)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "list WindowsInstances", err)
	}
	node, err := r.Nodes.Get(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	facts := s.Host.Facts
	reached := nodeidentity.ReachedHost{MachineID: facts.System.MachineID, NodeName: facts.NodeName}
	message := nodeidentity.HostMismatch(s.Instance, reached, node, instances)
	s.Session.OtherHost = message != ""
	if message == "" {
		return nil
	}
	s.Host.Facts = nil // the next attempt requests the facts again
	s.RequestSlotRelease()
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonHostMismatch, Message: message,
		NextAction: "Restore the addresses of the hosts, or list the host of Node " + s.NodeName() +
			" at its current address. Until then, nothing on this host is restored or deleted, and the Node is kept. " + r.forgetHint(s),
	}
}
