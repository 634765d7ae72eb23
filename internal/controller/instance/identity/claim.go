// Package identity decides and claims the node names of hosts. It obtains, renews and deletes the certificates of a
// node's services. Package policy judges the names and requests. Package identity does not connect to hosts.
package identity

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/adoption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// claimPollInterval is the interval between checks of a claim that waits for the withdrawal of another claim.
const claimPollInterval = time.Second

// NodeNamer assigns names to nodes.
type NodeNamer struct {
	Nodes    nodes.Nodes
	Machines nodes.Machines
	Adoption *adoption.Adoption
	Clock    clock.PassiveClock
}

// Claim decides the node name and ensures that it is unique. The claim is written before the check: if two
// instances claim one name at the same time, at least one instance observes the other claim.
func (n *NodeNamer) Claim(ctx context.Context, s *scope.Scope) *result.Result {
	name, o := n.existingNodeName(ctx, s)
	if name == "" && o == nil {
		name, o = n.expectedNodeName(ctx, s)
	}
	if o != nil {
		return o
	}
	if s.NodeName() == name && s.Instance.Status.NodeRef.Confirmed {
		return n.yieldSharedHost(ctx, s, name)
	}
	if o := n.refuseRename(ctx, s, name); o != nil {
		return o
	}
	claim, write := nodename.RenewClaim(s.Instance.Status.NodeRef, name, n.Clock.Now())
	s.Instance.Status.NodeRef = claim
	if write && s.Session.RefusedName != name {
		return result.WriteFirst(v1alpha1.ConditionJoined)
	}
	decision, err := n.checkClaim(ctx, s, name)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "check the node name", err)
	}
	if write && (decision.Allowed || decision.Transient) { // a name that is still refused is not claimed again each time
		return result.WriteFirst(v1alpha1.ConditionJoined)
	}
	if decision.Allowed {
		confirmed := *claim
		confirmed.Confirmed, confirmed.ClaimedAt = true, nil
		s.Session.RefusedName = ""
		s.Instance.Status.NodeRef = &confirmed
		// If the instance was paused or removed meanwhile, other instances no longer respect its claim. The
		// write is refused then.
		return result.WriteFirst(v1alpha1.ConditionJoined)
	}
	if decision.Transient {
		return &result.Result{
			Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonWaiting, Outcome: result.Wait,
			HoldsSlot: true, RequeueAfter: claimPollInterval,
			Message: decision.Message, NextAction: "The operator checks the claim again in one second.",
		}
	}
	return n.withdrawClaim(s, decision)
}

// withdrawClaim withdraws a claim.
func (n *NodeNamer) withdrawClaim(s *scope.Scope, decision policy.Decision) *result.Result {
	s.Session.RefusedName, s.Instance.Status.NodeRef = s.NodeName(), nil
	s.Host.Close()
	return &result.Result{
		Condition: v1alpha1.ConditionJoined, Reason: decision.Reason, Message: decision.Message,
		NextAction: result.HostUnchanged + "Give the host a unique name, or remove one of the two hosts from its source.",
	}
}

// yieldSharedHost withdraws a granted name when another instance of the host has the name and the Node. The host then
// belongs to that instance, and the known configuration of the host is no longer valid.
func (n *NodeNamer) yieldSharedHost(ctx context.Context, s *scope.Scope, name string) *result.Result {
	node, err := n.Nodes.GetCachedByName(ctx, name)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "read the Node", err)
	}
	if node != nil && node.Annotations[v1alpha1.AnnotationInstance] == s.Instance.Name {
		return nil
	}
	// The cache is sufficient: a host that waits for its Node is reconciled often, and another holder may be
	// found later.
	instances, err := n.Nodes.Claimants(ctx, name)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "find other instances with the node name", err)
	}
	decision := nodename.StillHeld(nodename.Claim{Instance: *s.Instance, NodeName: name, Node: node, Others: instances})
	if decision.Allowed {
		return nil
	}
	s.Instance.Status.SpecDigest = ""
	return n.withdrawClaim(s, decision)
}

// refuseRename stops when the host of a node was renamed. The Node stays bound to the instance. Under another
// name the host would become a second node, and the first would never be drained and deleted.
func (n *NodeNamer) refuseRename(ctx context.Context, s *scope.Scope, name string) *result.Result {
	ref := s.Instance.Status.NodeRef
	if ref == nil || !ref.Confirmed {
		return nil
	}
	if ref.UID == "" { // the kubelet may have registered an unbound Node
		node, err := n.Nodes.GetByName(ctx, ref.Name)
		if err != nil {
			return result.FromAPIError(v1alpha1.ConditionJoined, "read the Node", err)
		}
		if node == nil || !nodeidentity.HasStartupTaint(node) {
			return nil
		}
	}
	s.Host.Facts = nil // the next attempt reads the host facts again
	return &result.Result{
		Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonNameConflict, Outcome: result.Blocked,
		RequeueAfter: result.HostRecheckInterval,
		Message:      fmt.Sprintf("The host is Node %s, but its name is now %s. A host keeps its node name: no certificate is issued for another name.", ref.Name, name),
		NextAction:   fmt.Sprintf("Rename the host back to %s, or remove it from its source and add it again after its Node is deleted. Until then, the host is not changed.", ref.Name),
	}
}

// expectedNodeName returns the lower-case node name: the current or future computer name, or the name of the machine
// in the cloud. A Node keeps its name when the host joins or leaves a domain.
func (n *NodeNamer) expectedNodeName(ctx context.Context, s *scope.Scope) (string, *result.Result) {
	if name := s.ExistingNodeName(); name != "" {
		return name, nil
	}
	if nodename.IsNamedByCloud(s.Cluster.Platform) {
		return n.cloudNodeName(ctx, s)
	}
	name, err := nodename.OfHost(s.Cluster.Platform, hostName(s), s.Host.Facts.System.Domain)
	if ref := s.Instance.Status.NodeRef; ref != nil && ref.Confirmed && ref.Name != name {
		switch kept, readErr := n.canKeepHostName(ctx, s); {
		case readErr != nil:
			return "", result.FromAPIError(v1alpha1.ConditionJoined, "read the Node", readErr)
		case kept:
			return ref.Name, nil
		}
	}
	if err != nil {
		return "", &result.Result{
			Condition: v1alpha1.ConditionSupported, Reason: v1alpha1.ReasonHostNameInvalid, Message: err.Error(),
			NextAction: "Change the name of the Windows host, or its primary DNS suffix if the message names the suffix; the operator then continues.",
		}
	}
	return name, nil
}

func (n *NodeNamer) checkClaim(ctx context.Context, s *scope.Scope, name string) (policy.Decision, error) {
	claim, err := n.Nodes.Claim(ctx, s, name)
	if err != nil {
		return policy.Decision{}, err
	}
	claim.Cluster, claim.Now = s.Cluster, n.Clock.Now()
	if err := n.Adoption.AddLegacyProof(ctx, s, &claim); err != nil {
		return policy.Decision{}, err
	}
	return nodename.Grant(claim), nil
}

// CheckName checks that a granted name still belongs to the instance, and returns a result if it does not. A
// Node of another machine may have taken the name later, or another kubelet registered after the instance's
// Node was deleted. Then no certificate is signed for the name, and that Node is not changed. The returned
// claim, read from the API server, is the basis of the decision.
func (n *NodeNamer) CheckName(ctx context.Context, s *scope.Scope) (nodename.Claim, *result.Result) {
	now := n.Clock.Now()
	claim, err := n.Nodes.Claim(ctx, s, s.NodeName())
	if err != nil {
		return claim, result.FromAPIError(v1alpha1.ConditionJoined, "find other owners of the node name", err)
	}
	claim.Now = now
	if decision := nodename.StillGranted(claim); !decision.Allowed {
		return claim, &result.Result{
			Condition: v1alpha1.ConditionJoined, Reason: decision.Reason, Message: decision.Message,
			NextAction: "Give one of the two hosts a unique name, or remove one of them from the cluster. Until then, no certificate is issued.",
		}
	}
	return claim, nil
}
