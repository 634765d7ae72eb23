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

// idlePhase is the phase that ends the reconcile of an up-to-date host.
type idlePhase struct {
	disruptor *drain.Disruptor
	nodes     nodes.Nodes
	specs     desired.SpecBuilder
	rollback  *rollback.Rollback
	addresses addressWatcher
	clock     clock.PassiveClock
	version   string // of the operator
}

// reconcile ends the reconcile of an up-to-date host without a connection.
func (p idlePhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	if s.Instance.Status.SpecDigest == "" || s.NodeName() == "" {
		return nil
	}
	node, err := p.nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !s.WasActivated(node) {
		return nil
	}
	changed := p.specs.NeedsUpdate(s, node) || nodes.IsRebootRequested(node) || s.Instance.Status.RequestedReboot != nil
	s.NodeInService = nodeidentity.IsReady(node)
	if s.Instance.Status.PublicKeyHash != s.Key.Hash() {
		s.KeyDiffers = s.NodeInService
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
	if !s.NodeInService {
		return nodes.AwaitRepair(s.Instance, node, p.clock.Now())
	}
	if s.RevertBackoff == 0 {
		if err := p.nodes.Activate(ctx, s.Instance, node, s.Key.Hash()); err != nil {
			return result.FromAPIError(v1alpha1.ConditionReady, "annotate the Node", err)
		}
	}
	return p.finishUpToDate(ctx, s)
}

// needsCheck reports whether the operator must connect to the host of a working node. Either the name resolves to
// another address, the agent does not maintain the host, or a detected difference waits for a slot or a drain.
func (p idlePhase) needsCheck(s *scope.Scope, node *corev1.Node) (bool, *result.Result) {
	if s.NodeInService {
		var pending *result.Result
		if s.AddressChanged, pending = p.addresses.hasMoved(s); pending != nil {
			return false, pending
		}
	}
	if !s.AgentCheck {
		s.AgentCheck = s.NodeInService && tryBeginAgentCheck(s, node, p.clock.Now())
	}
	return s.AddressChanged || s.AgentCheck || s.AgentCheckDelay > 0 && (s.Session.PendingDisruption != "" || nodes.IsCordoned(node)), nil
}

// finishUpToDate ends the reconcile of an up-to-date host.
func (p idlePhase) finishUpToDate(ctx context.Context, s *scope.Scope) *result.Result {
	s.RequestSlotRelease()
	if o := p.rollback.ConsumeRetryAnnotation(ctx, s); o != nil {
		return o
	}
	if s.Renewal != nil {
		s.RestoreTrueConditions()
		return s.Renewal
	}
	s.RestoreTrueConditions()
	s.MarkTrue(v1alpha1.ConditionUpToDate, "The host matches the configuration of operator version "+p.version+".")
	s.Instance.Status.Version, s.Instance.Status.FailedChange = p.version, nil
	if digest := p.specs.ConfigurationDigest(s.Cluster); digest != "" { // unknown in a cluster that is not served
		s.Instance.Status.ConfigurationDigest = digest
	}
	s.Instance.Status.Kubernetes = p.specs.KubernetesFor(s)
	if refused := s.Session.Reverts.Refused; refused != nil {
		return withRequeueAfter(refused, s.RevertBackoff)
	}
	if failure := s.Session.AgentCheck.Failure; failure != nil && s.AgentCheckDelay > 0 {
		return withRequeueAfter(failure, s.AgentCheckDelay)
	}
	return &result.Result{Outcome: result.Done, RequeueAfter: p.addresses.nextResolveDelay(s.Instance)}
}
