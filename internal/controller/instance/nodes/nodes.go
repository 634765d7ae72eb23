// Package nodes reads and writes the Node of an instance. It decides nothing about hosts, and does not ask the gate.
package nodes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/coalesce"
	"github.com/windows-machine-config/wmco/internal/controller/instance/machines"
	"github.com/windows-machine-config/wmco/internal/controller/lookup"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// Nodes reads Nodes from the API server, and writes them.
type Nodes struct {
	Client client.Client
	// Live reads the API server and not the cache: what the operator has just written to a Node decides whether its host
	// is left alone.
	Live client.Reader
	// Listed has the readings of all instances.
	Listed *coalesce.Reads[[]v1alpha1.WindowsInstance]
	// Changes tell of changes of Nodes; without them Await does not wait.
	Changes   *Changes
	Clock     clock.WithTicker
	Machines  machines.Machines
	Namespace string // of the instances
	Version   string // of the operator

	pass *pass
}

// InPass returns Nodes for one pass over an instance.
func (n Nodes) InPass() Nodes {
	n.pass = &pass{}
	return n
}

// Of reads the instance's Node; nil when it is not there, or has no name yet.
func (n Nodes) Of(ctx context.Context, instance *v1alpha1.WindowsInstance) (*corev1.Node, error) {
	if NameOf(instance) == "" {
		return nil, nil
	}
	return n.Named(ctx, NameOf(instance))
}

// Named reads the Node of a name; nil when it is not there.
func (n Nodes) Named(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := n.Live.Get(ctx, types.NamespacedName{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		node = nil
	case err != nil:
		return nil, fmt.Errorf("read Node %s: %w", name, err)
	}
	n.see(name, node)
	return node, nil
}

// OfHost finds the Node whose host has shown that key and has one of these addresses; nil when there is none. The operator
// has noted the key on the Node, and admission keeps its kubelet from changing it. Machines of one image may share a key.
func (n Nodes) OfHost(ctx context.Context, key v1alpha1.HostKey, addresses []string) (*corev1.Node, error) {
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
		if node, err := n.Named(ctx, cached.Items[i].Name); err != nil || node != nil && ofHost(node) {
			return node, err
		}
	}
	return nil, nil
}

// Instances returns all instances, as the API server has them after this was called. Others get the same ones: they must
// not be changed.
func (n Nodes) Instances(ctx context.Context) ([]v1alpha1.WindowsInstance, error) {
	return n.Listed.Get(ctx, n.Clock, func(ctx context.Context) ([]v1alpha1.WindowsInstance, error) {
		var instances v1alpha1.WindowsInstanceList
		if err := n.Live.List(ctx, &instances, client.InNamespace(n.Namespace)); err != nil {
			return nil, fmt.Errorf("list WindowsInstances: %w", err)
		}
		return instances.Items, nil
	})
}

// Claimants returns the instances that have claimed a node name, as the cache has them. They must not be changed.
func (n Nodes) Claimants(ctx context.Context, name string) ([]v1alpha1.WindowsInstance, error) {
	return lookup.Instances{Cache: n.Client, Namespace: n.Namespace}.OfNode(ctx, name)
}

// WithHostKey returns the instances of hosts with a host key, as the cache has them. They must not be changed.
func (n Nodes) WithHostKey(ctx context.Context, key string) ([]v1alpha1.WindowsInstance, error) {
	return lookup.Instances{Cache: n.Client, Namespace: n.Namespace}.WithHostKey(ctx, key)
}

// Owns reports whether the Node is the instance's own and may be drained and deleted with it.
func (n Nodes) Owns(ctx context.Context, instance *v1alpha1.WindowsInstance, node *corev1.Node) (bool, error) {
	instances, err := n.Instances(ctx)
	if err != nil {
		return false, fmt.Errorf("find out whose Node %s is: %w", node.Name, err)
	}
	return nodeidentity.Owns(instance, node, instances), nil
}

// Claim returns the claim of an instance to a node name, with all instances and Machines that could have the name, and
// the Node of that name, which may be nil. The Node is read last: the lists may take seconds, and meanwhile another
// kubelet may register.
func (n Nodes) Claim(ctx context.Context, instance *v1alpha1.WindowsInstance, name string) (nodename.Claim, error) {
	claim := nodename.Claim{Instance: *instance, NodeName: name}
	var err error
	if claim.Others, err = n.Instances(ctx); err != nil {
		return claim, err
	}
	if claim.Machines, err = n.Machines.All(ctx, claim.Others); err != nil {
		return claim, err
	}
	claim.Node, err = n.Named(ctx, name)
	return claim, err
}

// NameOf returns the node name that an instance has claimed; empty before the claim.
func NameOf(instance *v1alpha1.WindowsInstance) string {
	if instance.Status.NodeRef == nil {
		return ""
	}
	return instance.Status.NodeRef.Name
}

// NotReadyMessage returns why a Node is not Ready, in the words of its kubelet.
func NotReadyMessage(node *corev1.Node) string {
	if ready := nodeidentity.ReadyCondition(node); ready != nil {
		return ready.Message
	}
	return "it has not reported yet"
}

// RebootWanted reports whether somebody has asked for a restart of the node's host.
func RebootWanted(node *corev1.Node) bool {
	_, wanted := node.Annotations[v1alpha1.AnnotationRebootRequired]
	return wanted
}
