// Package adoption adopts the Nodes of legacy operators (before version 12) and their pinned host keys. When
// no such clusters are left, this package and nodes/legacy.go can be deleted.
package adoption

import (
	"context"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// Adoption adopts nodes that a legacy operator configured.
type Adoption struct {
	Client    client.Client
	Live      client.Reader
	Nodes     nodes.Nodes
	Machines  nodes.Machines
	Clock     clock.PassiveClock
	Events    status.Recorder
	Namespace string // of the operator
	// Dial tests the ports of hosts.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// retryDelay is the delay before the next check of a claim that waits for the withdrawal of another claim.
const retryDelay = time.Second

// AdoptMachineNode binds the Node that a legacy operator created from the host of a Machine. The Machine API
// identifies the host, so that no connection is needed: the Machine may soon be replaced. An instance with a
// confirmed name keeps this name, even if a kubelet writes the same address to another Node.
func (a *Adoption) AdoptMachineNode(ctx context.Context, s *scope.Scope) *result.Result {
	if ref := s.Instance.Status.NodeRef; !s.HasMachine() || ref != nil && ref.Confirmed {
		return nil
	}
	node, proof, decision, err := a.legacyNodeOfMachine(ctx, s)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "find the Machine's Node", err)
	}
	if !decision.Allowed {
		return a.notAdopted(s, decision)
	}
	if node == nil {
		return nil
	}
	claim, write := nodename.RenewClaim(s.Instance.Status.NodeRef, node.Name, a.Clock.Now())
	if s.Instance.Status.NodeRef = claim; write {
		return result.WriteFirst(v1alpha1.ConditionJoined)
	}
	return a.bindLegacyNode(ctx, s, node, nodename.LegacyProof{Machine: proof})
}

// AdoptNode binds the Node of a legacy operator when its name has been granted to the instance, before the host is
// changed. From then on it counts as a node in service, which needs a disruption slot and is drained before
// changes.
func (a *Adoption) AdoptNode(ctx context.Context, s *scope.Scope) *result.Result {
	node, err := a.Nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "read the Node", err)
	}
	if node == nil || !nodeidentity.IsLegacyNode(node) {
		return nil
	}
	proof, err := a.buildLegacyProof(ctx, s, node)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "determine the owner of the Node", err)
	}
	return a.bindLegacyNode(ctx, s, node, proof)
}

// bindLegacyNode binds the Node if it belongs to the instance's host. The decision is repeated for the Node that is
// bound, because the Node may have appeared or changed after the name was granted. A Node that has changed
// since it was read is not bound.
func (a *Adoption) bindLegacyNode(ctx context.Context, s *scope.Scope, node *corev1.Node,
	proof nodename.LegacyProof) *result.Result {
	claim, err := a.Nodes.Claim(ctx, s, node.Name)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "check the node name", err)
	}
	claim.Legacy, claim.Now = proof, a.Clock.Now()
	if decision := nodename.Grant(claim); !decision.Allowed {
		return a.notAdopted(s, decision)
	}
	if err := a.Nodes.BindLegacy(ctx, s.Instance, node); err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "bind the Node to this instance", err)
	}
	from := node.Annotations[v1alpha1.AnnotationVersion]
	s.Instance.Status.NodeRef = &v1alpha1.NodeReference{Name: node.Name, UID: string(node.UID), Confirmed: true}
	s.Instance.Status.Version = from
	a.Events.Emit(status.NodeAdoptedEvent(s.Instance, node))
	s.MarkTrue(v1alpha1.ConditionJoined, "Node "+node.Name+" of the legacy operator was adopted.")
	return result.WriteFirst(v1alpha1.ConditionJoined)
}

// notAdopted withdraws the claim to the name, unless the decision waits for another claim.
func (a *Adoption) notAdopted(s *scope.Scope, decision policy.Decision) *result.Result {
	if decision.Transient {
		return &result.Result{
			Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonWaiting, Outcome: result.Wait,
			HoldsSlot: true, RequeueAfter: retryDelay,
			Message: decision.Message, NextAction: "The operator checks the claim again in one second.",
		}
	}
	s.Instance.Status.NodeRef = nil
	s.Host.Close()
	return &result.Result{
		Condition: v1alpha1.ConditionJoined, Reason: decision.Reason, Message: decision.Message,
		NextAction: "Correct the problem that the message names; the operator then continues automatically. Until then, the host and its Node are not changed.",
	}
}

// MayHaveLegacyFiles reports whether the host may have remains of a legacy operator without a ledger: its Node was
// adopted, and the host has not been upgraded since.
func (a *Adoption) MayHaveLegacyFiles(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.NodeName() == "" {
		return false, nil
	}
	node, err := a.Nodes.Get(ctx, s.Instance)
	if err != nil || node == nil || !nodes.IsLegacy(node) {
		return false, err
	}
	return a.Nodes.Owns(ctx, s, node)
}
