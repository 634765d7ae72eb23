package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/adoption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/identity"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// supportPhase is the phase that refuses hosts unsupported by this version.
type supportPhase struct {
	line      support.ReleaseLine
	nodes     nodes.Nodes
	nodeNamer *identity.NodeNamer
	adoption  *adoption.Adoption
}

// reconcile refuses a host that cannot be a node of this cluster, before the host is changed.
func (p supportPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	decision := p.line.SupportHost(s.Host.Facts.System, s.Cluster)
	if !decision.Allowed {
		return p.refuseUnsupported(ctx, s, decision)
	}
	// An existing node is not refused: its changes do not depend on the clock, and the message of Ready reports
	// the clock.
	if ref := s.Instance.Status.NodeRef; ref == nil || ref.UID == "" {
		if clock := support.SupportClock(s.Session.Clock); !clock.Allowed {
			s.Host.Facts = nil // the next attempt reads the facts again
			return hostRefused(clock, support.ClockRemedy)
		}
		if o := p.checkFirewall(ctx, s); o != nil {
			return o
		}
	}
	s.MarkTrue(v1alpha1.ConditionSupported, decision.Message)
	return nil
}

// checkFirewall refuses a host with a group policy that could cut off its network. The host of a legacy node has
// a pod network already.
func (p supportPhase) checkFirewall(ctx context.Context, s *scope.Scope) *result.Result {
	firewall := support.SupportFirewall(s.Host.Facts.System)
	if firewall.Allowed {
		return nil
	}
	legacy, err := p.adoption.NodesAtAddress(ctx, s)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "find the Nodes of the legacy operator", err)
	}
	if len(legacy) > 0 {
		return nil
	}
	s.Host.Facts = nil // the next attempt reads the policy again
	return hostRefused(firewall, support.FirewallRemedy)
}

// hostRefused returns the result for a host that cannot be a node in its current state.
func hostRefused(decision policy.Decision, remedy string) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionSupported, Reason: decision.Reason, Outcome: result.Blocked,
		RequeueAfter: result.HostRecheckInterval, Message: decision.Message, NextAction: result.HostUnchanged + remedy,
	}
}

// refuseUnsupported returns the result for an unsupported host. A node in service stays in service: the Node of a
// legacy operator is adopted, and a node that was restarted on request accepts pods again.
func (p supportPhase) refuseUnsupported(ctx context.Context, s *scope.Scope, decision policy.Decision) *result.Result {
	if o := p.adoptLegacyNode(ctx, s); o != nil {
		return o
	}
	node, err := servingNode(ctx, s, p.nodes)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	o := hostRefused(decision, support.HostRemedy)
	if node == nil {
		return o
	}
	if ended := p.endRestart(ctx, s, node); ended != nil {
		return ended
	}
	o.NextAction = buildRemedy(s, false)
	return refuseHost(s, node, o)
}

// adoptLegacyNode binds the Node of a listed host that a legacy operator has configured.
func (p supportPhase) adoptLegacyNode(ctx context.Context, s *scope.Scope) *result.Result {
	if ref := s.Instance.Status.NodeRef; s.HasMachine() || ref != nil && ref.UID != "" {
		return nil
	}
	legacy, err := p.adoption.NodesAtAddress(ctx, s)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "find the Nodes of the legacy operator", err)
	}
	if len(legacy) == 0 {
		return nil
	}
	if o := p.nodeNamer.Claim(ctx, s); o != nil {
		return o
	}
	if o := p.adoption.AdoptNode(ctx, s); o != nil {
		return o
	}
	if s.Instance.Status.NodeRef.UID == "" { // the Node with the address of the host has another name
		s.Instance.Status.NodeRef = nil
	}
	return nil
}

// endRestart uncordons a node that was drained for a requested restart, if its kubelet reports Ready.
func (p supportPhase) endRestart(ctx context.Context, s *scope.Scope, node *corev1.Node) *result.Result {
	known := s.Instance.Status.SpecDigest != "" || nodes.IsLegacy(node)
	if s.Instance.Status.RequestedReboot == nil || !known {
		return nil
	}
	if !nodeidentity.IsReady(node) {
		return nodes.AwaitRestarted(node)
	}
	if err := p.nodes.EndRestart(ctx, s.Instance); err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "uncordon the Node", err)
	}
	s.RequestSlotRelease()
	return nil
}
