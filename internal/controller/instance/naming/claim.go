// Package naming decides the node name of a host, claims it, and makes sure that it is unique.
package naming

import (
	"context"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/adoption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/link"
	"github.com/windows-machine-config/wmco/internal/controller/instance/machines"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// claimPoll is how soon a claim is looked at again that waits for another to be withdrawn.
const claimPoll = time.Second

// Names gives nodes their names.
type Names struct {
	Nodes    nodes.Nodes
	Machines machines.Machines
	Adoption *adoption.Adoption
	Link     *link.Link
	Status   status.Writer
}

// Claim decides the node's name and makes sure that it is unique. It writes the claim before it checks it: of two
// instances that claim one name at the same time, at least one sees the other.
func (n *Names) Claim(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
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
	claim, write := nodename.Stake(s.Instance.Status.NodeRef, name, n.Status.Clock.Now())
	if s.Instance.Status.NodeRef = claim; write {
		if err := n.Status.Patch(ctx, s); err != nil {
			return obstacle.API(v1alpha1.ConditionJoined, "claim the node name", err)
		}
	}
	decision, err := n.checkClaim(ctx, s, name)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionJoined, "check the node name", err)
	}
	if decision.Allowed {
		confirmed := *claim
		confirmed.Confirmed, confirmed.ClaimedAt = true, nil
		s.Instance.Status.NodeRef = &confirmed
		// Meanwhile the instance may have been paused or removed, and then its claim no longer counts for others.
		if err := n.Status.PatchUnchanged(ctx, s); err != nil {
			s.Instance.Status.NodeRef = claim
			return obstacle.API(v1alpha1.ConditionJoined, "confirm the node name", err)
		}
		return nil
	}
	if decision.Passes {
		return &obstacle.Obstacle{
			Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonWaiting, Outcome: obstacle.Wait,
			KeepsTurn: true, After: claimPoll,
			Message: decision.Message, Next: "The operator looks again in a second.",
		}
	}
	return n.withdraw(s, decision)
}

// withdraw gives a claim up.
func (n *Names) withdraw(s *scope.Scope, decision policy.Decision) *obstacle.Obstacle {
	s.Instance.Status.NodeRef = nil
	n.Link.Close(s)
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionJoined, Reason: decision.Reason, Message: decision.Message,
		Next: obstacle.Untouched + "Give the host a name of its own, or take one of the two out of its source.",
	}
}

// keep gives a granted name up when another instance of the host has it and the Node. The host is that instance's: what
// is known of its configuration is no longer true.
func (n *Names) keep(ctx context.Context, s *scope.Scope, name string) *obstacle.Obstacle {
	node, err := n.Nodes.Named(ctx, name)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionJoined, "read the Node", err)
	}
	if node != nil && node.Annotations[v1alpha1.AnnotationInstance] == s.Instance.Name {
		return nil
	}
	// The cache is enough: a host that waits for its Node asks often, and another holder may be found a moment later.
	instances, err := n.Nodes.Claimants(ctx, name)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionJoined, "find the other instances of the name", err)
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
func (n *Names) refuseRename(ctx context.Context, s *scope.Scope, name string) *obstacle.Obstacle {
	ref := s.Instance.Status.NodeRef
	if ref == nil || !ref.Confirmed {
		return nil
	}
	if ref.UID == "" { // the kubelet may have registered it, and nobody has noted that yet
		node, err := n.Nodes.Named(ctx, ref.Name)
		if err != nil {
			return obstacle.API(v1alpha1.ConditionJoined, "read the Node", err)
		}
		if node == nil || !nodeidentity.Unproven(node) {
			return nil
		}
	}
	s.Session.Facts = nil // the next attempt asks the host again
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonNameConflict, Outcome: obstacle.NeedsAdministrator,
		After:   obstacle.HostRecheck,
		Message: fmt.Sprintf("The host is Node %s, but its name is now %s. A host keeps its node name: no certificate is issued for another name.", ref.Name, name),
		Next:    fmt.Sprintf("Nothing on the host is changed. Rename it back to %s, or remove it from its source and add it again after its Node is gone.", ref.Name),
	}
}

// expected returns the lower-case form of the name that the host has or is to be given, or by which the cloud knows it.
// A Node keeps its name when the host joins a domain or leaves it.
func (n *Names) expected(ctx context.Context, s *scope.Scope) (string, *obstacle.Obstacle) {
	if name := s.KeptNodeName(); name != "" {
		return name, nil
	}
	if nodename.GivenByCloud(s.Cluster.Platform) {
		return n.byCloud(ctx, s)
	}
	name, err := nodename.OfHost(s.Cluster.Platform, hostName(s), s.Session.Facts.System.Domain)
	if ref := s.Instance.Status.NodeRef; ref != nil && ref.Confirmed && ref.Name != name {
		switch kept, readErr := n.keepsHostName(ctx, s); {
		case readErr != nil:
			return "", obstacle.API(v1alpha1.ConditionJoined, "read the Node", readErr)
		case kept:
			return ref.Name, nil
		}
	}
	if err != nil {
		return "", &obstacle.Obstacle{
			Condition: v1alpha1.ConditionSupported, Reason: v1alpha1.ReasonHostNameInvalid, Message: err.Error(),
			Next: "Give the Windows host another name, or another primary DNS suffix if the message names that; the operator then continues.",
		}
	}
	return name, nil
}

func (n *Names) checkClaim(ctx context.Context, s *scope.Scope, name string) (policy.Decision, error) {
	claim, err := n.Nodes.Claim(ctx, s.Instance, name)
	if err != nil {
		return policy.Decision{}, err
	}
	claim.Cluster, claim.Now = s.Cluster, n.Status.Clock.Now()
	if err := n.Adoption.Prove(ctx, s, &claim); err != nil {
		return policy.Decision{}, err
	}
	return nodename.Grant(claim), nil
}

// StillNamed returns the obstacle to a name that was granted; nil when the name is still the instance's own. Later a
// Node of another machine may have taken the name, or the instance's own was deleted and another kubelet was faster:
// then nothing is signed for the name and nothing is written to that Node. The claim is what it was decided on. It may
// be that of an earlier decision of the same pass, with the Node as it is now; nil has everything read.
func (n *Names) StillNamed(ctx context.Context, s *scope.Scope, claim *nodename.Claim) (*nodename.Claim,
	*obstacle.Obstacle) {
	if claim == nil {
		now := n.Status.Clock.Now()
		read, err := n.Nodes.Claim(ctx, s.Instance, s.NodeName())
		if err != nil {
			return nil, obstacle.API(v1alpha1.ConditionJoined, "find out what else has the name of the Node", err)
		}
		read.Now = now
		claim = &read
	}
	if decision := nodename.StillGranted(*claim); !decision.Allowed {
		return nil, &obstacle.Obstacle{
			Condition: v1alpha1.ConditionJoined, Reason: decision.Reason, Message: decision.Message,
			Next: "Nothing was signed. Give this host or the other a name of its own, or take one of the two out of the cluster.",
		}
	}
	return claim, nil
}
