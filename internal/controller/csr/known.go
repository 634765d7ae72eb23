package csr

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// knownNodes are the nodes of instances that are to be nodes, with the names and addresses that the operator knows them by, and all other
// nodes of the cluster, so that no host gets a certificate for one of theirs.
func (r *Reconciler) knownNodes(ctx context.Context) ([]policy.KnownNode, map[string]*v1alpha1.WindowsInstance, error) {
	var list v1alpha1.WindowsInstanceList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace)); err != nil {
		return nil, nil, fmt.Errorf("list WindowsInstances: %w", err)
	}
	var known []policy.KnownNode
	byNode := map[string]*v1alpha1.WindowsInstance{}
	for i := range list.Items {
		instance := &list.Items[i]
		ref := instance.Status.NodeRef
		if ref == nil || !ref.Confirmed || instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
			continue
		}
		node := policy.KnownNode{Name: ref.Name, Names: []string{ref.Name}}
		if host := instance.Status.Host; host != nil {
			node.Addresses = append(node.Addresses, host.Addresses...)
		}
		node.AddSpecAddress(instance.Spec.Address)
		known = append(known, node)
		byNode[node.Name] = instance
	}
	var nodes corev1.NodeList
	if err := r.Live.List(ctx, &nodes); err != nil {
		return nil, nil, fmt.Errorf("list Nodes: %w", err)
	}
	for _, node := range nodes.Items {
		if byNode[node.Name] == nil {
			known = append(known, foreign(node))
		}
	}
	return known, byNode, nil
}

func foreign(node corev1.Node) policy.KnownNode {
	result := policy.KnownNode{Name: node.Name, Foreign: true, Names: []string{node.Name}}
	for _, address := range node.Status.Addresses {
		result.AddSpecAddress(address.Address)
	}
	return result
}

// addMachine adds what the cloud says that the host of an instance's Machine is called: a kubelet serves under the names and addresses that
// the cloud gives its Node too, and a host cannot tell them of itself. Without a Machine, or when it is gone, nothing is added.
func (r *Reconciler) addMachine(ctx context.Context, known []policy.KnownNode, instance *v1alpha1.WindowsInstance) error {
	if instance == nil || instance.Spec.Source.Machine == nil {
		return nil
	}
	reference := instance.Spec.Source.Machine
	machine := &machinev1beta1.Machine{}
	key := types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
	if err := r.Live.Get(ctx, key, machine); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("read Machine %s: %w", key, err)
	}
	if machine.UID != reference.UID {
		return nil
	}
	for i := range known {
		if known[i].Foreign || known[i].Name != instance.Status.NodeRef.Name {
			continue
		}
		for _, address := range machine.Status.Addresses {
			known[i].AddSpecAddress(address.Address)
		}
	}
	return nil
}
