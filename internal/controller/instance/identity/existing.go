package identity

import (
	"cmp"
	"context"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// existingNodeName returns the name of the existing Node of a listed host without a granted name; empty if there is
// none. Under another name the host would become a second node, and the first would not be drained.
func (n *NodeNamer) existingNodeName(ctx context.Context, s *scope.Scope) (string, *result.Result) {
	if ref := s.Instance.Status.NodeRef; !s.IsBYOH() || ref != nil && ref.Confirmed {
		return "", nil
	}
	name, err := n.formerEntryName(ctx, s)
	if name != "" || err != nil {
		if err != nil {
			return "", result.FromAPIError(v1alpha1.ConditionJoined, "find the other entries of the host", err)
		}
		return name, nil
	}
	name, decision, err := n.legacyNodeName(ctx, s)
	switch {
	case err != nil:
		return "", result.FromAPIError(v1alpha1.ConditionJoined, "find the Nodes of the legacy operator", err)
	case !decision.Allowed:
		return "", n.refuseLegacy(s, decision)
	}
	return name, nil
}

// formerEntryName returns the node name of an earlier instance of the same host, if this instance replaces the
// entry of the earlier one. Grant decides whether the name is transferred.
func (n *NodeNamer) formerEntryName(ctx context.Context, s *scope.Scope) (string, error) {
	if s.Instance.Status.HostKey == nil {
		return "", nil
	}
	others, err := n.Nodes.WithHostKey(ctx, s.Instance.Status.HostKey.Key)
	if err != nil {
		return "", err
	}
	return nodename.OfFormerEntry(s.Instance, others), nil
}

// legacyNodeName returns the name of the Node that a legacy operator created from the host.
func (n *NodeNamer) legacyNodeName(ctx context.Context, s *scope.Scope) (string, policy.Decision, error) {
	found, err := n.Adoption.NodesAtAddress(ctx, s)
	if err != nil || len(found) == 0 {
		return "", policy.Decision{Allowed: true}, err
	}
	search := nodename.LegacySearch{
		Platform: s.Cluster.Platform, Address: s.Host.Connection.Address(), HostName: s.Host.Facts.System.HostName,
		Expected: nameOfNewNode(s), Found: found,
	}
	if search.Expected != "" {
		if search.Named, err = n.Nodes.GetByName(ctx, search.Expected); err != nil {
			return "", policy.Decision{}, err
		}
	}
	name, decision := nodename.LegacyNode(search)
	return name, decision, nil
}

// refuseLegacy stops before the host or a Node is changed.
func (n *NodeNamer) refuseLegacy(s *scope.Scope, decision policy.Decision) *result.Result {
	o := n.withdrawClaim(s, decision)
	o.NextAction = result.HostUnchanged + "Delete the Node that does not belong to this host, for example the Node of a host that no longer exists or has a new address. " +
		"If the host was renamed, rename it back."
	return o
}

// nameOfNewNode returns the name that the host would have as a new node; empty if unknown.
func nameOfNewNode(s *scope.Scope) string {
	facts := s.Host.Facts
	if nodename.IsNamedByCloud(s.Cluster.Platform) {
		if facts.CloudName == nil {
			return ""
		}
		return strings.ToLower(facts.CloudName.Name)
	}
	name, err := nodename.OfHost(s.Cluster.Platform, hostName(s), facts.System.Domain)
	if err != nil {
		return "" // expectedNodeName reports the error, unless there is a legacy Node
	}
	return name
}

// hostName returns the desired computer name of the host, or else the current one.
func hostName(s *scope.Scope) string {
	return cmp.Or(s.Instance.Spec.HostName, s.Host.Facts.System.HostName)
}

// canKeepHostName reports whether a host keeps its granted node name: the Node exists, and has the host's name
// with or without a domain.
func (n *NodeNamer) canKeepHostName(ctx context.Context, s *scope.Scope) (bool, error) {
	ref := s.Instance.Status.NodeRef
	if !nodename.IsNamedAfter(ref.Name, hostName(s)) {
		return false, nil
	}
	if ref.UID != "" {
		return true, nil
	}
	node, err := n.Nodes.GetByName(ctx, ref.Name) // the kubelet may have registered an unbound Node
	return node != nil, err
}
