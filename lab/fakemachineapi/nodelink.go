package fakemachineapi

import (
	"context"
	"fmt"
	"slices"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// findNode returns the Node of a Machine: the Node with the same provider ID, otherwise the Node with the same
// internal address. Several matches are an error.
func (r *machineReconciler) findNode(ctx context.Context, m *machinev1.Machine) (*corev1.Node, error) {
	nodes := &corev1.NodeList{}
	if err := r.List(ctx, nodes); err != nil {
		return nil, err
	}
	for _, same := range []func(*machinev1.Machine, *corev1.Node) bool{hasSameProviderID, hasSameAddress} {
		var found []*corev1.Node
		for i := range nodes.Items {
			if same(m, &nodes.Items[i]) {
				found = append(found, &nodes.Items[i])
			}
		}
		if len(found) > 1 {
			return nil, fmt.Errorf("link Machine %s to its Node: %s and %s both have its provider ID or address", m.Name,
				found[0].Name, found[1].Name)
		}
		if len(found) == 1 && found[0].DeletionTimestamp.IsZero() {
			return found[0], nil
		}
	}
	return nil, nil
}

func hasSameProviderID(m *machinev1.Machine, node *corev1.Node) bool {
	return node.Spec.ProviderID != "" && node.Spec.ProviderID == ptr.Deref(m.Spec.ProviderID, "")
}

func hasSameAddress(m *machinev1.Machine, node *corev1.Node) bool {
	return slices.ContainsFunc(m.Status.Addresses, func(a corev1.NodeAddress) bool {
		return a.Type == corev1.NodeInternalIP && slices.Contains(node.Status.Addresses, a)
	})
}

// syncNodeMetadata copies labels and taints from the Machine to its Node, and sets annotationMachine. Values of other
// writers are kept, and removed values are restored.
func (r *machineReconciler) syncNodeMetadata(ctx context.Context, m *machinev1.Machine, node *corev1.Node) error {
	after := node.DeepCopy()
	after.Annotations = mergeMaps(after.Annotations, map[string]string{annotationMachine: m.Namespace + "/" + m.Name})
	if !r.BareNodes {
		after.Labels = mergeMaps(after.Labels, m.Spec.Labels)
		for _, taint := range m.Spec.Taints {
			if !slices.ContainsFunc(after.Spec.Taints, func(other corev1.Taint) bool { return other.MatchTaint(&taint) }) {
				after.Spec.Taints = append(after.Spec.Taints, taint)
			}
		}
	}
	if equality.Semantic.DeepEqual(node, after) {
		return nil
	}
	// Other clients also write taints, and a list is replaced completely.
	err := r.Patch(ctx, after, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{}))
	return client.IgnoreNotFound(err)
}

// machinesOf returns the Machines affected by a change of a Node.
func (r *machineReconciler) machinesOf(ctx context.Context, object client.Object) []reconcile.Request {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil
	}
	return r.machineRequests(ctx, func(m *machinev1.Machine) bool {
		return m.Status.NodeRef != nil && m.Status.NodeRef.Name == node.Name || hasSameProviderID(m, node) ||
			hasSameAddress(m, node)
	})
}

// machineRequests returns requests for the matching Machines.
func (r *machineReconciler) machineRequests(ctx context.Context, matter func(*machinev1.Machine) bool) []reconcile.Request {
	machines, err := r.listMachines(ctx)
	if err != nil {
		return nil // The cache has stopped.
	}
	var requests []reconcile.Request
	for i := range machines {
		if matter(&machines[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&machines[i])})
		}
	}
	return requests
}
