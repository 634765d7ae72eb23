package removal

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Identify stops before the node is drained if the host at the address is known to be another machine than the Node's:
// its host key was accepted since, or another machine presents the same key. Whether it is another node's host is known
// only from the host itself; later attempts begin with that question, and so acquire no disruption slot each time. A host
// that is not reached is drained as any other.
func (r *Removal) Identify(ctx context.Context, s *scope.Scope) *result.Result {
	if !NeedsHost(s) || !nodeidentity.OtherMachine(s.Instance) && !s.Session.OtherHost {
		return nil
	}
	if s.Host.MidWork(hostjobs.KindConnect, hostjobs.KindFacts) {
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
	return r.mismatch(ctx, s)
}

// identifyUnconfigured stops at a host without a ledger that is another machine, while the Node is Ready.
func (r *Removal) identifyUnconfigured(ctx context.Context, s *scope.Scope) *result.Result {
	if !nodeidentity.OtherMachine(s.Instance) {
		return nil
	}
	if o := r.Inspect(ctx, s); o != nil {
		return o
	}
	return r.mismatch(ctx, s)
}

// mismatch returns the result of a reached host that is not the host of the instance's Node: nothing on it is restored
// or deleted, and the Node stays. The facts of the host must have been read.
func (r *Removal) mismatch(ctx context.Context, s *scope.Scope) *result.Result {
	instances, err := r.Nodes.Instances(ctx, s)
	if err != nil {
		return result.API(v1alpha1.ConditionReady, "list WindowsInstances", err)
	}
	node, err := r.Nodes.Of(ctx, s.Instance)
	if err != nil {
		return result.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	facts := s.Host.Facts
	reached := nodeidentity.ReachedHost{MachineID: facts.System.MachineID, NodeName: facts.NodeName}
	message := nodeidentity.HostMismatch(s.Instance, reached, node, instances)
	s.Session.OtherHost = message != ""
	if message == "" {
		return nil
	}
	s.Host.Facts = nil // the next attempt requests them again
	s.LeaveGate()
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonHostMismatch, Message: message,
		Next: "Nothing on this host is restored or deleted, and Node " + s.NodeName() + " stays. Give the hosts their addresses back, or list the host of Node " +
			s.NodeName() + " at its present address. " + r.forgetHint(s),
	}
}
