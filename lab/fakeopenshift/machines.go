package fakeopenshift

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const machineNamespace = "openshift-machine-api"

var machineResource = schema.GroupVersionResource{Group: "machine.openshift.io", Version: "v1beta1",
	Resource: "machines"}

// machineOf returns a node's Machine; nil if there is none. A Machine that refers to the node takes precedence.
// Otherwise it is a Machine without a reference that has the node's provider ID, an internal address of the
// node, or the node's name.
func (s *simulator) machineOf(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	list, err := s.dynamic.Resource(machineResource).Namespace(machineNamespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil // The cluster has no Machine API.
	}
	if err != nil {
		return nil, fmt.Errorf("list machines: %w", err)
	}
	node, err := s.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		node, err = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	}
	if err != nil {
		return nil, err
	}
	matchers := []func(*unstructured.Unstructured, *corev1.Node) bool{hasNodeRef, hasProviderIDOf, hasAddressOf, hasNodeName}
	for i, matches := range matchers {
		for j := range list.Items {
			machine := &list.Items[j]
			if free := nodeName(machine) == ""; (i == 0 || free) && matches(machine, node) {
				return machine, nil
			}
		}
	}
	return nil, nil
}

func hasNodeRef(machine *unstructured.Unstructured, node *corev1.Node) bool {
	return nodeName(machine) == node.Name
}

func hasProviderIDOf(machine *unstructured.Unstructured, node *corev1.Node) bool {
	return node.Spec.ProviderID != "" && machineProviderID(machine) == node.Spec.ProviderID
}

func hasAddressOf(machine *unstructured.Unstructured, node *corev1.Node) bool {
	known := machineAddresses(machine)
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP && known[address.Address] {
			return true
		}
	}
	return false
}

func hasNodeName(machine *unstructured.Unstructured, node *corev1.Node) bool {
	return machine.GetName() == node.Name || machineAddresses(machine)[node.Name]
}

func nodeName(machine *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(machine.Object, "status", "nodeRef", "name")
	return name
}

func machineProviderID(machine *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(machine.Object, "spec", "providerID")
	return id
}

func machineAddresses(machine *unstructured.Unstructured) map[string]bool {
	addresses, _, _ := unstructured.NestedSlice(machine.Object, "status", "addresses")
	known := map[string]bool{}
	for _, entry := range addresses {
		if address, ok := entry.(map[string]any); ok {
			if text, ok := address["address"].(string); ok {
				known[text] = true
			}
		}
	}
	return known
}
