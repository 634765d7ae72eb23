package cluster

import (
	"context"
	"crypto/tls"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// metricsServingSecret is what the cluster's service CA keeps a certificate in, because the Service windows-exporter
// asks for it.
const metricsServingSecret = "windows-machine-config-operator-tls"

// MetricsServing returns the Secret with the certificate that the exporters of Windows nodes serve with.
func MetricsServing(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: metricsServingSecret}
}

// UnusableMetrics returns what is wrong with the Secret of MetricsServing or the ConfigMap of MetricsClients; nil when
// exporters can use it, and for any other object.
func UnusableMetrics(object runtime.Object) *Notice {
	if clients := asMetricsClients(object); clients != nil {
		return unusableClients(clients)
	}
	if secret, ok := object.(*corev1.Secret); ok && secret.Name == metricsServingSecret {
		return unusableServing(secret)
	}
	return nil
}

// unusableServing returns what is wrong with the Secret of MetricsServing.
func unusableServing(secret *corev1.Secret) *Notice {
	// The error is not passed on: it may tell of the key.
	if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err == nil {
		return nil
	}
	return &Notice{
		Object: "Secret " + client.ObjectKeyFromObject(secret).String(), ResourceVersion: secret.ResourceVersion,
		Field: "keys " + corev1.TLSCertKey + " and " + corev1.TLSPrivateKeyKey,
		Message: "they are not a certificate and its key in PEM. " +
			"Delete the Secret: the service CA operator creates it again.",
	}
}

// readMetricsServing reads the exporters' certificate. Where it is absent they serve plain HTTP; one that is wrong is
// an error, so that no exporter that serves HTTPS is made to serve plain HTTP. A reader that remembers the last good
// one gives that instead.
func readMetricsServing(namespace string) func(context.Context, client.Reader, *nodespec.Cluster) error {
	return func(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
		name := MetricsServing(namespace).String()
		secret := &corev1.Secret{}
		_, found, err := readOptional(ctx, reader, name, secret, "Secret "+name)
		if err != nil || !found {
			return err
		}
		if fault := unusableServing(secret); fault != nil {
			return &Error{Object: fault.Object, Field: fault.Field, Message: fault.Message}
		}
		facts.MetricsServing = nodespec.ServingCertificate{
			Certificate: string(secret.Data[corev1.TLSCertKey]), Key: nodespec.Secret(secret.Data[corev1.TLSPrivateKeyKey]),
		}
		return readMetricsClients(ctx, reader, facts)
	}
}
