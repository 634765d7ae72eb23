package instance

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/adoption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/lookup"
)

// remember is the phase that restores what an instance which was made again has forgotten.
type remember struct {
	nodes    nodes.Nodes
	adoption *adoption.Adoption
	client   client.Client
}

// run restores what a WindowsInstance that was deleted and made again has forgotten: the Node is bound to it by name,
// and keeps the pinned host key. It is written at once, because the disruption policy counts nodes as the API has them,
// and this reconcile may ask to disturb the node. A host that has no Node of this operator yet may have been pinned by
// one before it.
func (p remember) run(ctx context.Context, s *scope.Scope) *result.Result {
	if s.Instance.Status.HostKey != nil {
		return nil
	}
	candidates, err := p.candidates(ctx, s)
	if err != nil {
		return result.API(v1alpha1.ConditionReachable, "find the host's Node", err)
	}
	for i := range candidates {
		node := &candidates[i]
		own, err := p.nodes.Owns(ctx, s, node)
		if err != nil {
			return result.API(v1alpha1.ConditionReachable, "find out whose Node it is", err)
		}
		if !own {
			continue
		}
		s.Instance.Status.NodeRef = &v1alpha1.NodeReference{Name: node.Name, UID: string(node.UID), Confirmed: true}
		if key := node.Annotations[v1alpha1.AnnotationHostKey]; key != "" {
			s.Instance.Status.HostKey = &v1alpha1.HostKey{Type: node.Annotations[v1alpha1.AnnotationHostKeyType], Key: key,
				Fingerprint: fingerprint(key)}
		}
		if !sameNode(s.Stored.Status.NodeRef, s.Instance.Status.NodeRef) || s.Instance.Status.HostKey != nil {
			return result.WriteFirst(v1alpha1.ConditionReachable)
		}
	}
	if s.Instance.Spec.DesiredState != v1alpha1.DesiredStateNode {
		return nil
	}
	return p.adoption.ImportHostKey(ctx, s)
}

// sameNode reports whether two references are the same.
func sameNode(a, b *v1alpha1.NodeReference) bool { return a != nil && b != nil && *a == *b }

// candidates are the Nodes for which it is worth a request to find out whose they are. They are shared with the cache.
func (p remember) candidates(ctx context.Context, s *scope.Scope) ([]corev1.Node, error) {
	found, err := lookup.NodesBoundTo(ctx, p.client, s.Instance.Name)
	if name := s.NodeName(); err == nil && name != "" {
		named := &corev1.Node{}
		if err = p.client.Get(ctx, client.ObjectKey{Name: name}, named); err == nil {
			found = append(slices.Clip(found), *named)
		}
		err = client.IgnoreNotFound(err)
	}
	return found, err
}

// fingerprint returns the fingerprint of a host key in base64; empty for an invalid key.
func fingerprint(key string) string {
	if parsed, err := hostjobs.ParseHostKey(key); err == nil {
		return parsed.Fingerprint
	}
	return ""
}
