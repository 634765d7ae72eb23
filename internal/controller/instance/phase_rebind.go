package instance

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/internal/controller/instance/adoption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// rebindPhase is the phase that restores the status of a recreated instance.
type rebindPhase struct {
	nodes    nodes.Nodes
	adoption *adoption.Adoption
	client   client.Client
}

// reconcile restores the status of a WindowsInstance that was deleted and recreated: the Node is bound to it by name,
// and records the pinned host key. The status is written immediately, because the disruption policy counts nodes
// by the API objects, and this reconcile may request the disruption of the node. If the host has no Node of this
// operator, a legacy operator may have pinned the key.
func (p rebindPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	if s.Instance.Status.HostKey != nil {
		return nil
	}
	candidates, err := p.listCandidateNodes(ctx, s)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReachable, "find the host's Node", err)
	}
	for i := range candidates {
		node := &candidates[i]
		own, err := p.nodes.Owns(ctx, s, node)
		if err != nil {
			return result.FromAPIError(v1alpha1.ConditionReachable, "determine the owner of the Node", err)
		}
		if !own {
			continue
		}
		s.Instance.Status.NodeRef = &v1alpha1.NodeReference{Name: node.Name, UID: string(node.UID), Confirmed: true}
		if key := node.Annotations[v1alpha1.AnnotationHostKey]; key != "" {
			s.Instance.Status.HostKey = &v1alpha1.HostKey{Type: node.Annotations[v1alpha1.AnnotationHostKeyType], Key: key,
				Fingerprint: hostKeyFingerprint(key)}
		}
		if !isSameNodeRef(s.Stored.Status.NodeRef, s.Instance.Status.NodeRef) || s.Instance.Status.HostKey != nil {
			return result.WriteFirst(v1alpha1.ConditionReachable)
		}
	}
	if s.Instance.Spec.DesiredState != v1alpha1.DesiredStateNode {
		return nil
	}
	return p.adoption.ImportHostKey(ctx, s)
}

// isSameNodeRef reports whether two references are the same.
func isSameNodeRef(a, b *v1alpha1.NodeReference) bool { return a != nil && b != nil && *a == *b }

// listCandidateNodes returns the Nodes that may belong to the instance. The Nodes are shared with the cache.
func (p rebindPhase) listCandidateNodes(ctx context.Context, s *scope.Scope) ([]corev1.Node, error) {
	found, err := index.NodesBoundTo(ctx, p.client, s.Instance.Name)
	if name := s.NodeName(); err == nil && name != "" {
		named := &corev1.Node{}
		if err = p.client.Get(ctx, client.ObjectKey{Name: name}, named); err == nil {
			found = append(slices.Clip(found), *named)
		}
		err = client.IgnoreNotFound(err)
	}
	return found, err
}

// hostKeyFingerprint returns the fingerprint of a host key in base64; empty for an invalid key.
func hostKeyFingerprint(key string) string {
	if parsed, err := hostjobs.ParseHostKey(key); err == nil {
		return parsed.Fingerprint
	}
	return ""
}
