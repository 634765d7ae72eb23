package csr

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// addCloud adds what the cloud says that the instance's host is called: a kubelet serves under the names and addresses that the cloud gives its
// Node too, and a host cannot tell them of itself. The Machine API tells of its Machines, and a Node's own status of other hosts.
func (r *Reconciler) addCloud(ctx context.Context, known *knowledge, instance *v1alpha1.WindowsInstance) error {
	own := slices.IndexFunc(known.nodes, func(n policy.KnownNode) bool { return !n.Foreign && n.Name == instance.Status.NodeRef.Name })
	if own < 0 {
		return nil
	}
	if instance.Spec.Source.Machine != nil {
		return r.addMachine(ctx, &known.nodes[own], instance.Spec.Source.Machine)
	}
	return r.addNode(ctx, known, own, instance)
}

// addMachine adds the addresses of the instance's Machine. When it is gone, nothing is added.
func (r *Reconciler) addMachine(ctx context.Context, node *policy.KnownNode, reference *v1alpha1.MachineReference) error {
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
	for _, address := range machine.Status.Addresses {
		node.AddSpecAddress(address.Address)
	}
	return nil
}

// addNode adds what the Node's status says, and makes known what anybody else has: a kubelet may write the status of its own Node.
func (r *Reconciler) addNode(ctx context.Context, known *knowledge, own int, instance *v1alpha1.WindowsInstance) error {
	node := &known.nodes[own]
	i := slices.IndexFunc(known.present, func(n corev1.Node) bool { return n.Name == node.Name })
	if i < 0 || r.Cluster == nil {
		return nil
	}
	cluster, err := r.Cluster.Current()
	if err != nil {
		return nil //nolint:nilerr // clusterconfig tells it; the request is left pending and looked at again
	}
	before := len(node.Names) + len(node.Addresses)
	node.AddCloudAddresses(&known.present[i], cluster)
	if len(node.Names)+len(node.Addresses) == before {
		return nil
	}
	machines, err := r.machines(ctx)
	if err != nil {
		return err
	}
	known.addOthers(instance, machines)
	return nil
}

// addOthers makes known all that other Nodes, Machines and instances are called.
func (k *knowledge) addOthers(instance *v1alpha1.WindowsInstance, machines []machinev1beta1.Machine) {
	for i := range k.present {
		node := &k.present[i]
		if node.Name != instance.Status.NodeRef.Name {
			k.nodes = append(k.nodes, foreign(node.Name, node.Name, node.Status.Addresses))
		}
	}
	for i := range machines {
		machine := &machines[i]
		nodeName := ""
		if machine.Status.NodeRef != nil {
			nodeName = machine.Status.NodeRef.Name
		}
		k.nodes = append(k.nodes, foreign("of Machine "+machine.Name, nodeName, machine.Status.Addresses))
	}
	for i := range k.all {
		other := &k.all[i]
		if other.Name == instance.Name || policy.SameHost(other, instance) {
			continue // a host that has moved has two instances for a while
		}
		node := told(other)
		node.Name, node.Foreign = "of WindowsInstance "+other.Name, true
		k.nodes = append(k.nodes, node)
	}
}

// machines are all Machines of the cluster; none where there is no Machine API.
func (r *Reconciler) machines(ctx context.Context) ([]machinev1beta1.Machine, error) {
	var list machinev1beta1.MachineList
	err := r.Live.List(ctx, &list, client.InNamespace(v1alpha1.MachineNamespace))
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list Machines, whose addresses are taken: %w", err)
	}
	return list.Items, nil
}
