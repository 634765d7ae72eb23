package instance

import (
	"context"
	"encoding/base64"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/ownership"
)

// rememberNode restores what a WindowsInstance that was deleted and made again has forgotten: the Node is bound to it by name, and keeps
// the pinned host key. A host that has no Node of this operator yet may have been pinned by one before it.
func (r *Reconciler) rememberNode(ctx context.Context, s *scope) *obstacle {
	if s.instance.Status.HostKey != nil {
		return nil
	}
	var nodes corev1.NodeList
	if err := s.Client.List(ctx, &nodes); err != nil {
		return apiObstacle(v1alpha1.ConditionReachable, "list Windows nodes", err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if !s.mayBeOwn(node) {
			continue
		}
		own, err := s.owns(ctx, node)
		if err != nil {
			return apiObstacle(v1alpha1.ConditionReachable, "find out whose Node it is", err)
		}
		if !own {
			continue
		}
		s.instance.Status.NodeRef = &v1alpha1.NodeReference{Name: node.Name, UID: string(node.UID), Confirmed: true}
		if key := node.Annotations[v1alpha1.AnnotationHostKey]; key != "" {
			s.instance.Status.HostKey = &v1alpha1.HostKey{Type: node.Annotations[v1alpha1.AnnotationHostKeyType], Key: key, Fingerprint: fingerprint(key)}
			return nil
		}
	}
	if s.instance.Spec.DesiredState != v1alpha1.DesiredStateNode {
		return nil
	}
	return s.importHostKey(ctx, nodes.Items)
}

// mayBeOwn reports whether it is worth a request to find out whose the Node is.
func (s *scope) mayBeOwn(node *corev1.Node) bool {
	return node.Annotations[v1alpha1.AnnotationInstance] == s.instance.Name || node.Name == s.nodeName()
}

// fingerprint is that of a host key in base64; empty when it is none.
func fingerprint(key string) string {
	data, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return ""
	}
	parsed, err := ssh.ParsePublicKey(data)
	if err != nil {
		return ""
	}
	return ssh.FingerprintSHA256(parsed)
}

// handOver finds out whether the host of an instance that is to be removed belongs to another instance by now: it is listed under a
// second address, or moved to a new one. Then the host and its node stay, and only the instance goes.
func (r *Reconciler) handOver(ctx context.Context, s *scope) *obstacle {
	var instances v1alpha1.WindowsInstanceList
	if err := r.Live.List(ctx, &instances, client.InNamespace(r.Namespace)); err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "list WindowsInstances", err)
	}
	for i := range instances.Items {
		other := &instances.Items[i]
		if ownership.GoesOnWith(other, s.instance) {
			s.handedOver = true
			s.emit(hostStays(s.instance, other))
			return nil
		}
	}
	return nil
}
