package monitoring

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// maxSliceEndpoints is the maximum number of addresses in an EndpointSlice, the same as in Kubernetes' own controller.
const maxSliceEndpoints = 100

// sliceChanges holds the changes from the current to the desired EndpointSlices.
type sliceChanges struct {
	write, remove []*discoveryv1.EndpointSlice
}

// diffSlices compares the EndpointSlices in the operator's namespace with the desired addresses. An address stays
// in its slice. A new address is added to the fullest slice with free capacity, so that adding or removing a
// node changes one slice. Foreign slices are not changed, and their names are not used.
func diffSlices(namespace string, present []discoveryv1.EndpointSlice, addresses []address) sliceChanges {
	missing := make(map[string]address, len(addresses))
	for _, a := range addresses {
		missing[a.node] = a
	}
	var kept []*discoveryv1.EndpointSlice
	names, before := map[string]bool{}, map[string]*discoveryv1.EndpointSlice{}
	for i := range present {
		names[present[i].Name] = true
		if !isOwnedSlice(&present[i]) {
			continue
		}
		before[present[i].Name] = &present[i]
		kept = append(kept, reduceSlice(namespace, &present[i], missing))
	}
	for _, a := range addresses { // in a fixed order, so that the result does not depend on the order of a map
		if _, ok := missing[a.node]; ok {
			kept = assignToSlice(namespace, kept, names, a)
		}
	}
	var result sliceChanges
	for _, slice := range kept {
		was := before[slice.Name]
		switch {
		case len(slice.Endpoints) > 0 && (was == nil || !isSliceUpToDate(was, slice)):
			result.write = append(result.write, slice)
		case len(slice.Endpoints) == 0 && was != nil:
			result.remove = append(result.remove, was)
		}
	}
	return result
}

func isOwnedSlice(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelServiceName] == Name && slice.Labels[discoveryv1.LabelManagedBy] == v1alpha1.OperatorName
}

// reduceSlice returns a current slice reduced to the desired addresses, and removes these addresses from missing.
func reduceSlice(namespace string, was *discoveryv1.EndpointSlice,
	missing map[string]address) *discoveryv1.EndpointSlice {
	slice := newSlice(namespace, was.Name)
	slice.ResourceVersion = was.ResourceVersion
	if was.AddressType != slice.AddressType {
		return slice // the type is immutable, and an empty slice is deleted
	}
	for _, endpoint := range was.Endpoints {
		a, ok := missing[ptr.Deref(endpoint.NodeName, "")]
		if ok && len(slice.Endpoints) < maxSliceEndpoints {
			slice.Endpoints = append(slice.Endpoints, endpointOf(a))
			delete(missing, a.node)
		}
	}
	return slice
}

// assignToSlice adds an address to the fullest slice with free capacity, or to a new slice.
func assignToSlice(namespace string, all []*discoveryv1.EndpointSlice, names map[string]bool,
	a address) []*discoveryv1.EndpointSlice {
	var fullest *discoveryv1.EndpointSlice
	for _, slice := range all {
		count := len(slice.Endpoints)
		if count < maxSliceEndpoints && (fullest == nil || count > len(fullest.Endpoints)) {
			fullest = slice
		}
	}
	if fullest == nil {
		fullest = newSlice(namespace, freeName(names))
		all = append(all, fullest)
	}
	fullest.Endpoints = append(fullest.Endpoints, endpointOf(a))
	return all
}

// freeName returns the first unused name, and marks it as used.
func freeName(names map[string]bool) string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("%s-%d", Name, i); !names[name] {
			names[name] = true
			return name
		}
	}
}

func newSlice(namespace, name string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			discoveryv1.LabelServiceName: Name, discoveryv1.LabelManagedBy: v1alpha1.OperatorName,
			// Prometheus handles the slices of a headless Service like all other slices; kube-proxy ignores
			// slices with this label.
			corev1.IsHeadlessService: "", labelName: Name, v1alpha1.LabelManagedBy: v1alpha1.OperatorName,
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{
			Name: ptr.To(portName), Port: ptr.To[int32](exporterPort), Protocol: ptr.To(corev1.ProtocolTCP),
		}},
	}
}

// endpointOf returns the endpoint of a node. The endpoint is always ready, so that Prometheus shows an outage
// of the node.
func endpointOf(a address) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{a.ip},
		Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		NodeName:   ptr.To(a.node),
		TargetRef:  targetOf(a),
	}
}

func targetOf(a address) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Node", Name: a.node, UID: a.uid}
}

func isSliceUpToDate(was, wanted *discoveryv1.EndpointSlice) bool {
	for name, value := range wanted.Labels {
		if present, there := was.Labels[name]; !there || present != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(was.Endpoints, wanted.Endpoints) &&
		slices.EqualFunc(was.Ports, wanted.Ports, func(a, b discoveryv1.EndpointPort) bool {
			return equality.Semantic.DeepEqual(a, b)
		})
}
