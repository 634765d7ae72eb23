package monitoring

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Names in the Service in deploy/metrics.yaml, and of its certificate.
const (
	operatorService = "windows-machine-config-operator-metrics"
	operatorSecret  = operatorService + "-tls"
	metricsPort     = "metrics"
)

// OperatorTarget makes an operator without a pod a target of Prometheus. It writes the files that the pod would
// mount as /metrics-tls to dir, and adds the address of the operator's metrics to the Service.
func OperatorTarget(ctx context.Context, r *testenv.Environment, address, dir string) error {
	secret := &corev1.Secret{}
	err := r.WaitFor(ctx, "the certificate of the operator's metrics", &corev1.Secret{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			err := reader.Get(ctx, client.ObjectKey{Namespace: r.Namespace(), Name: operatorSecret}, secret)
			return err == nil, client.IgnoreNotFound(err)
		})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write the certificate of the operator's metrics: %w", err)
	}
	for name, content := range secret.Data {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write the certificate of the operator's metrics: %w", err)
		}
	}
	slice, err := operatorSlice(r.Namespace(), address)
	if err != nil {
		return err
	}
	if err := r.Client.Create(ctx, slice); err != nil {
		return fmt.Errorf("give Service %s the address of the operator: %w", operatorService, err)
	}
	return nil
}

// operatorSlice returns the EndpointSlice that the EndpointSlice controller would create for the operator's
// pod.
func operatorSlice(namespace, address string) (*discoveryv1.EndpointSlice, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("the address of the operator's metrics: %w", err)
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the address of the operator's metrics, %s: %w", address, err)
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operatorService + "-lab", Labels: map[string]string{
			discoveryv1.LabelServiceName: operatorService, discoveryv1.LabelManagedBy: "lab"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To(metricsPort), Port: ptr.To(int32(port)), Protocol: ptr.To(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{host},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
	}, nil
}
