package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/rollback"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// idle is the phase that ends the reconcile of an up-to-date host.
type idle struct {
	turn      *drain.Turn
	nodes     nodes.Nodes
	specs     desired.Specs
	rollback  *rollback.Rollback
	addresses addresses
	clock     clock.PassiveClock
	version   string // of the operator
}

// run ends the reconcile of an up-to-date host without a connection.
func (p idle) run(ctx context.Context, s *scope.Scope) *result.Result {
	if s.Instance.Status.SpecDigest == "" || s.NodeName() == "" {
		return nil
	}
	node, err := p.nodes.Recent(ctx, s.Instance)
	if err != nil {
		return result.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !s.Released(node) {
		return nil
	}
	changed := p.specs.Pending(s, node) || nodes.RebootWanted(node) || s.Instance.Status.RequestedReboot != nil
	s.Works = nodeidentity.Ready(node)
	if s.Instance.Status.PublicKeyHash != s.Key.Hash() {
		s.KeyDiffers = s.Works
		s.OnlyKeyDiffers = s.KeyDiffers && !changed
		return nil
	}
	needed, pending := p.needsCheck(s, node)
	if pending != nil {
		return pending
	}
	if needed || changed {
		return nil
	}
	if !s.Works {
		return nodes.AwaitRepair(s.Instance, node, p.clock.Now())
	}
	if s.PutBackIn == 0 {
		if err := p.nodes.Release(ctx, s.Instance, node, s.Key.Hash()); err != nil {
			return result.API(v1alpha1.ConditionReady, "annotate the Node", err)
		}
	}
	return p.nothingToDo(ctx, s)
}

// needsCheck reports whether the operator must connect to the host of a working node. Either the name resolves to
// another address, the agent does not maintain the host, or a detected difference waits for a slot or a drain.
func (p idle) needsCheck(s *scope.Scope, node *corev1.Node) (bool, *result.Result) {
	if s.Works {
		var pending *result.Result
		if s.Moved, pending = p.addresses.moved(s); pending != nil {
			return false, pending
		}
	}
	if !s.AgentCheck {
		s.AgentCheck = s.Works && beginAgentCheck(s, node, p.clock.Now())
	}
	return s.Moved || s.AgentCheck || s.AgentCheckIn > 0 && (s.Session.Turn != "" || nodes.Cordoned(node)), nil
}

// nothingToDo ends the reconcile of an up-to-date host.
func (p idle) nothingToDo(ctx context.Context, s *scope.Scope) *result.Result {
	s.LeaveGate()
	if o := p.rollback.TakeRetry(ctx, s); o != nil {
		return o
	}
	if s.Renewal != nil {
		s.PassWhatHeld()
		return s.Renewal
	}
	s.PassWhatHeld()
	s.Pass(v1alpha1.ConditionUpToDate, "The host matches the configuration of operator version "+p.version+".")
	s.Instance.Status.Version, s.Instance.Status.FailedChange = p.version, nil
	s.Instance.Status.ConfigurationDigest = p.specs.Configuration(s.Cluster)
	if refused := s.Session.PutBack.Refused; refused != nil {
		return waitingStill(refused, s.PutBackIn)
	}
	if failure := s.Session.AgentCheck.Failure; failure != nil && s.AgentCheckIn > 0 {
		return waitingStill(failure, s.AgentCheckIn)
	}
	return &result.Result{Outcome: result.NothingToDo, After: p.addresses.nextLook(s.Instance)}
}
