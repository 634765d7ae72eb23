// Package identity decides and claims the node names of hosts, and has the certificates of a node's services signed, renewed
// and deleted. It judges names and requests by package policy, and connects to no host.
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

// claimPoll is how soon a claim is looked at again that waits for another to be withdrawn.
const claimPoll = time.Second

// Names gives nodes their names.
type Names struct {
	Nodes    nodes.Nodes
	Machines nodes.Machines
	Adoption *adoption.Adoption
	Clock    clock.PassiveClock
}

// Claim decides the node's name and makes sure that it is unique. It writes the claim before it checks it: of two
// instances that claim one name at the same time, at least one sees the other.
func (n *Names) Claim(ctx context.Context, s *scope.Scope) *result.Result {
	name, o := n.existing(ctx, s)
	if name == "" && o == nil {
		name, o = n.expected(ctx, s)
	}
	if o != nil {
		return o
	}
	if s.NodeName() == name && s.Instance.Status.NodeRef.Confirmed {
		return n.keep(ctx, s, name)
	}
	if o := n.refuseRename(ctx, s, name); o != nil {
		return o
	}
	claim, write := nodename.Stake(s.Instance.Status.NodeRef, name, n.Clock.Now())
	s.Instance.Status.NodeRef = claim
	if write && s.Session.RefusedName != name {
		return result.WriteFirst(v1alpha1.ConditionJoined)
	}
	decision, err := n.checkClaim(ctx, s, name)
	if err != nil {
		return result.API(v1alpha1.ConditionJoined, "check the node name", err)
	}
	if write && (decision.Allowed || decision.Passes) { // a name that is refused still is not claimed again each time
		return result.WriteFirst(v1alpha1.ConditionJoined)
	}
	if decision.Allowed {
		confirmed := *claim
		confirmed.Confirmed, confirmed.ClaimedAt = true, nil
		s.Session.RefusedName = ""
		s.Instance.Status.NodeRef = &confirmed
		// Meanwhile the instance may have been paused or removed, and then its claim no longer counts for others: the write is
		// refused then.
		return result.WriteFirst(v1alpha1.ConditionJoined)
	}
	if decision.Passes {
		return &result.Result{
			Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonWaiting, Outcome: result.Wait,
			KeepsTurn: true, After: claimPoll,
			Message: decision.Message, Next: "The operator checks the claim again in one second.",
		}
	}
	return n.withdraw(s, decision)
}

// withdraw gives a claim up.
func (n *Names) withdraw(s *scope.Scope, decision policy.Decision) *result.Result {
	s.Session.RefusedName, s.Instance.Status.NodeRef = s.NodeName(), nil
	s.Host.Close()
	return &result.Result{
		Condition: v1alpha1.ConditionJoined, Reason: decision.Reason, Message: decision.Message,
		Next: result.Untouched + "Give the host a unique name, or remove one of the two hosts from its source.",
	}
}

// keep gives a granted name up when another instance of the host has it and the Node. The host is that instance's: what
// is known of its configuration is no longer true.
func (n *Names) keep(ctx context.Context, s *scope.Scope, name string) *result.Result {
	node, err := n.Nodes.RecentNamed(ctx, name)
	if err != nil {
		return result.API(v1alpha1.ConditionJoined, "read the Node", err)
	}
	if node != nil && node.Annotations[v1alpha1.AnnotationInstance] == s.Instance.Name {
		return nil
	}
	// The cache is enough: a host that waits for its Node asks often, and another holder may be found a moment later.
	instances, err := n.Nodes.Claimants(ctx, name)
	if err != nil {
		return result.API(v1alpha1.ConditionJoined, "find the other instances of the name", err)
	}
	decision := nodename.StillHeld(nodename.Claim{Instance: *s.Instance, NodeName: name, Node: node, Others: instances})
	if decision.Allowed {
		return nil
	}
	s.Instance.Status.SpecDigest = ""
	return n.withdraw(s, decision)
}

// refuseRename stops at a host that is a node and calls itself otherwise since. Its Node stays bound to it: under
// another name the host would be a second node, and nobody would drain and delete the first.
func (n *Names) refuseRename(ctx context.Context, s *scope.Scope, name string) *result.Result {
	ref := s.Instance.Status.NodeRef
	if ref == nil || !ref.Confirmed {
		return nil
	}
	if ref.UID == "" { // the kubelet may have registered it, and nobody has noted that yet
		node, err := n.Nodes.Named(ctx, ref.Name)
		if err != nil {
			return result.API(v1alpha1.ConditionJoined, "read the Node", err)
		}
		if node == nil || !nodeidentity.Unproven(node) {
			return nil
		}
	}
	s.Host.Facts = nil // the next attempt asks the host again
	return &result.Result{
		Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonNameConflict, Outcome: result.NeedsAdministrator,
		After:   result.HostRecheck,
		Message: fmt.Sprintf("The host is Node %s, but its name is now %s. A host keeps its node name: no certificate is issued for another name.", ref.Name, name),
		Next:    fmt.Sprintf("Nothing on the host is changed. Rename it back to %s, or remove it from its source and add it again after its Node is gone.", ref.Name),
	}
}

// expected returns the lower-case form of the name that the host has or is to be given, or by which the cloud knows it.
// A Node keeps its name when the host joins a domain or leaves it.
func (n *Names) expected(ctx context.Context, s *scope.Scope) (string, *result.Result) {
	if name := s.KeptNodeName(); name != "" {
		return name, nil
	}
	if nodename.GivenByCloud(s.Cluster.Platform) {
		return n.byCloud(ctx, s)
	}
	name, err := nodename.OfHost(s.Cluster.Platform, hostName(s), s.Host.Facts.System.Domain)
	if ref := s.Instance.Status.NodeRef; ref != nil && ref.Confirmed && ref.Name != name {
		switch kept, readErr := n.keepsHostName(ctx, s); {
		case readErr != nil:
			return "", result.API(v1alpha1.ConditionJoined, "read the Node", readErr)
		case kept:
			return ref.Name, nil
		}
	}
	if err != nil {
		return "", &result.Result{
			Condition: v1alpha1.ConditionSupported, Reason: v1alpha1.ReasonHostNameInvalid, Message: err.Error(),
			Next: "Give the Windows host another name, or another primary DNS suffix if the message names that; the operator then continues.",
		}
	}
	return name, nil
}

func (n *Names) checkClaim(ctx context.Context, s *scope.Scope, name string) (policy.Decision, error) {
	claim, err := n.Nodes.Claim(ctx, s, name)
	if err != nil {
		return policy.Decision{}, err
	}
	claim.Cluster, claim.Now = s.Cluster, n.Clock.Now()
	if err := n.Adoption.Prove(ctx, s, &claim); err != nil {
		return policy.Decision{}, err
	}
	return nodename.Grant(claim), nil
}

// StillNamed returns the result to a name that was granted; nil when the name is still the instance's own. Later a
// Node of another machine may have taken the name, or the instance's own was deleted and another kubelet was faster:
// then nothing is signed for the name and nothing is written to that Node. The claim, read from the API server, is what it was
// decided on.
func (n *Names) StillNamed(ctx context.Context, s *scope.Scope) (nodename.Claim, *result.Result) {
	now := n.Clock.Now()
	claim, err := n.Nodes.Claim(ctx, s, s.NodeName())
	if err != nil {
		return claim, result.API(v1alpha1.ConditionJoined, "look up other owners of the Node's name", err)
	}
	claim.Now = now
	if decision := nodename.StillGranted(claim); !decision.Allowed {
		return claim, &result.Result{
			Condition: v1alpha1.ConditionJoined, Reason: decision.Reason, Message: decision.Message,
			Next: "No certificate was issued. Give one of the two hosts a unique name, or remove one of them from the cluster.",
		}
	}
	return claim, nil
}
