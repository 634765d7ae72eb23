package monitoring

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/controller/owned"
)

const (
	// labelSkipMirror tells Kubernetes not to make an EndpointSlice of the Endpoints: those are there already.
	labelSkipMirror = "endpointslice.kubernetes.io/skip-mirror"
	// mostInEndpoints is how many addresses Kubernetes itself writes into Endpoints.
	mostInEndpoints = 1000
)

// endpoints returns the Endpoints object, which those versions of Prometheus read that do not read EndpointSlices.
//
//nolint:staticcheck // deprecated, and Prometheus still reads them
func endpoints(namespace string, addresses []address) owned.Object {
	var subsets []corev1.EndpointSubset
	if len(addresses) > 0 {
		listed := make([]corev1.EndpointAddress, 0, min(len(addresses), mostInEndpoints))
		for _, a := range addresses[:cap(listed)] {
			listed = append(listed, corev1.EndpointAddress{IP: a.ip, NodeName: ptr.To(a.node), TargetRef: targetOf(a)})
		}
		subsets = []corev1.EndpointSubset{{Addresses: listed,
			Ports: []corev1.EndpointPort{{Name: portName, Port: exporterPort, Protocol: corev1.ProtocolTCP}}}}
	}
	return owned.Object{
		Identity: &corev1.Endpoints{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name},
		},
		Fill: func(object client.Object) {
			e, ok := object.(*corev1.Endpoints)
			if !ok {
				return
			}
			setIn(&e.Labels, labelName, Name)
			setIn(&e.Labels, labelSkipMirror, "true")
			delete(e.Annotations, corev1.EndpointsOverCapacity)
			if len(addresses) > mostInEndpoints {
				setIn(&e.Annotations, corev1.EndpointsOverCapacity, "truncated")
			}
			e.Subsets = subsets
		},
		// They belong to the Service of their name, which is the operator's.
		Adopt: legacy(func(client.Object) bool { return true }),
	}
}
