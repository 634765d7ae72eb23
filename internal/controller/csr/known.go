package csr

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// knowledge is what a request is judged by.
type knowledge struct {
	// nodes are those of instances that are to be nodes, with the names and addresses that the operator knows them by, and all other nodes of
	// the cluster, so that no host gets a certificate for one of theirs.
	nodes []policy.KnownNode
	// instances are those of the former, by the node's name, and all are all others too.
	instances map[string]*v1alpha1.WindowsInstance
	all       []v1alpha1.WindowsInstance
	// present are the cluster's Nodes.
	present []corev1.Node
}

func (r *Reconciler) knowledge(ctx context.Context) (*knowledge, error) {
	var list v1alpha1.WindowsInstanceList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace)); err != nil {
		return nil, fmt.Errorf("list WindowsInstances: %w", err)
	}
	var nodes corev1.NodeList
	if err := r.Live.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}
	known := &knowledge{instances: map[string]*v1alpha1.WindowsInstance{}, all: list.Items, present: nodes.Items}
	for i := range list.Items {
		instance := &list.Items[i]
		ref := instance.Status.NodeRef
		if ref == nil || !ref.Confirmed || instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
			continue
		}
		node := told(instance)
		node.Name, node.Names = ref.Name, append(node.Names, ref.Name)
		known.nodes = append(known.nodes, node)
		known.instances[node.Name] = instance
	}
	for _, node := range nodes.Items {
		if known.instances[node.Name] == nil {
			known.nodes = append(known.nodes, foreign(node.Name, node.Name, node.Status.Addresses))
		}
	}
	return known, nil
}

// told is what an instance's host and source say that it is called.
func told(instance *v1alpha1.WindowsInstance) policy.KnownNode {
	var node policy.KnownNode
	if host := instance.Status.Host; host != nil {
		node.Addresses = append(node.Addresses, host.Addresses...)
	}
	node.AddSpecAddress(instance.Spec.Address)
	return node
}

// foreign is somebody whose names and addresses are not ours to give.
func foreign(name, nodeName string, addresses []corev1.NodeAddress) policy.KnownNode {
	result := policy.KnownNode{Name: name, Foreign: true}
	if nodeName != "" {
		result.Names = append(result.Names, nodeName)
	}
	for _, address := range addresses {
		result.AddSpecAddress(address.Address)
	}
	return result
}
