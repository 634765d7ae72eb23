// Package nodes reads and writes the Node of an instance, explains why a Node is not Ready, and reads
// Machines. It does not decide on hosts, and does not use the gate.
package nodes

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// Nodes reads Nodes from the API server, and writes them.
type Nodes struct {
	Client client.Client
	// Live reads from the API server, not from the cache. The last write of the operator to a Node can decide
	// whether its host stays unchanged.
	Live client.Reader
	// Listed lists all instances.
	Listed queue.Lists[v1alpha1.WindowsInstance]
	// Written contains the Nodes as last written by the operator.
	Written  *WrittenNodes
	Clock    clock.WithTicker
	Machines Machines
	// NodeWaitStatusDelay is the delay before the status shows a wait for a Node.
	NodeWaitStatusDelay time.Duration
	Namespace           string // of the instances
	Version             string // of the operator
}

// GetCached returns the instance's Node from the cache, or as last written by the operator if that version is
// newer. It returns nil if the Node does not exist or has no name yet.
func (n Nodes) GetCached(ctx context.Context, instance *v1alpha1.WindowsInstance) (*corev1.Node, error) {
	name := scope.NodeNameOf(instance)
	if name == "" {
		return nil, nil
	}
	return n.GetCachedByName(ctx, name)
}

// GetCachedByName is GetCached for a given node name.
func (n Nodes) GetCachedByName(ctx context.Context, name string) (*corev1.Node, error) {
	cached := &corev1.Node{}
	err := n.Client.Get(ctx, types.NamespacedName{Name: name}, cached)
	switch {
	case apierrors.IsNotFound(err):
		cached = nil
	case err != nil:
		return nil, fmt.Errorf("read Node %s: %w", name, err)
	}
	return n.Written.newerNode(name, cached), nil
}

// Get reads the instance's Node. It returns nil if the Node does not exist or has no name yet.
func (n Nodes) Get(ctx context.Context, instance *v1alpha1.WindowsInstance) (*corev1.Node, error) {
	if scope.NodeNameOf(instance) == "" {
		return nil, nil
	}
	return n.GetByName(ctx, scope.NodeNameOf(instance))
}

// GetByName reads the Node with the given name, and returns nil if it does not exist.
func (n Nodes) GetByName(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := n.Live.Get(ctx, types.NamespacedName{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		node = nil
	case err != nil:
		return nil, fmt.Errorf("read Node %s: %w", name, err)
	}
	return node, nil
}

// FindByHost returns the Node with the given host key and a matching address; nil if there is none. The operator
// has recorded the host key on the Node, and admission prevents the kubelet from changing it. Machines
// created from one image may share a host key.
func (n Nodes) FindByHost(ctx context.Context, key v1alpha1.HostKey, addresses []string) (*corev1.Node, error) {
	ofHost := func(node *corev1.Node) bool {
		return node.Annotations[v1alpha1.AnnotationHostKey] == key.Key && node.Annotations[v1alpha1.AnnotationHostKeyType] == key.Type &&
			slices.ContainsFunc(nodeidentity.InternalIPs(node.Status.Addresses), func(ip string) bool { return slices.Contains(addresses, ip) })
	}
	var cached corev1.NodeList
	if err := n.Client.List(ctx, &cached, client.MatchingLabels{corev1.LabelOSStable: "windows"}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Windows nodes: %w", err)
	}
	for i := range cached.Items {
		if !ofHost(&cached.Items[i]) {
			continue
		}
		if node, err := n.GetByName(ctx, cached.Items[i].Name); err != nil || node != nil && ofHost(node) {
			return node, err
		}
	}
	return nil, nil
}

// Instances returns all instances, as listed by the API server after the version of the scope's instance was
// written. Callers must not modify them. Instances returns queue.ErrNotRead if the caller must wait for the
// list.
func (n Nodes) Instances(ctx context.Context, s *scope.Scope) ([]v1alpha1.WindowsInstance, error) {
	requests := queue.Requests[v1alpha1.WindowsInstance]{Next: &s.Session.Instances, Current: &s.Instances}
	return n.Listed.Get(ctx, client.ObjectKeyFromObject(s.Instance), s.Stored.ResourceVersion, requests,
		func(ctx context.Context) ([]v1alpha1.WindowsInstance, error) {
			var instances v1alpha1.WindowsInstanceList
			if err := n.Live.List(ctx, &instances, client.InNamespace(n.Namespace)); err != nil {
				return nil, fmt.Errorf("list WindowsInstances: %w", err)
			}
			return instances.Items, nil
		})
}

// Claimants returns the cached instances that have claimed a node name. Callers must not modify them.
func (n Nodes) Claimants(ctx context.Context, name string) ([]v1alpha1.WindowsInstance, error) {
	return index.Instances{Cache: n.Client, Namespace: n.Namespace}.OfNode(ctx, name)
}

// WithHostKey returns the cached instances with the given host key. Callers must not modify them.
func (n Nodes) WithHostKey(ctx context.Context, key string) ([]v1alpha1.WindowsInstance, error) {
	return index.Instances{Cache: n.Client, Namespace: n.Namespace}.WithHostKey(ctx, key)
}

// Owns reports whether the instance owns the Node, so that the Node may be drained and deleted with the
// instance.
func (n Nodes) Owns(ctx context.Context, s *scope.Scope, node *corev1.Node) (bool, error) {
	instances, err := n.Instances(ctx, s)
	if err != nil {
		return false, fmt.Errorf("determine the owner of Node %s: %w", node.Name, err)
	}
	return nodeidentity.IsNodeOwner(s.Instance, node, instances), nil
}

// Claim returns the claim of an instance to a node name. The claim contains all instances and Machines that could
// have the name, and the Node with that name, which may be nil. The Node is read last: listing may take seconds,
// and another kubelet may register meanwhile.
func (n Nodes) Claim(ctx context.Context, s *scope.Scope, name string) (nodename.Claim, error) {
	claim := nodename.Claim{Instance: *s.Instance, NodeName: name}
	var err error
	if claim.Others, err = n.Instances(ctx, s); err != nil {
		return claim, err
	}
	if claim.Machines, err = n.Machines.All(ctx, s, claim.Others); err != nil {
		return claim, err
	}
	claim.Node, err = n.GetByName(ctx, name)
	return claim, err
}

// NotReadyMessage returns the kubelet's message about why a Node is not Ready.
func NotReadyMessage(node *corev1.Node) string {
	if ready := nodeidentity.ReadyCondition(node); ready != nil {
		return ready.Message
	}
	return "the kubelet has not reported yet"
}

// IsRebootRequested reports whether a restart of the node's host was requested.
func IsRebootRequested(node *corev1.Node) bool {
	_, wanted := node.Annotations[v1alpha1.AnnotationRebootRequired]
	return wanted
}
