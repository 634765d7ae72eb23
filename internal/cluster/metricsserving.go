package cluster

import (
	"context"
	"crypto/tls"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// metricsServingSecret is what the cluster's service CA keeps a certificate in, because the operator's metrics Service
// asks for it.
const metricsServingSecret = "windows-machine-config-operator-tls"

// MetricsServing returns the Secret with the certificate that the exporters of Windows nodes serve with.
func MetricsServing(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: metricsServingSecret}
}

// readMetricsServing reads the exporters' certificate. Where it is absent they serve plain HTTP; one that is wrong is
// an error, so that no exporter that serves HTTPS is made to serve plain HTTP.
func readMetricsServing(namespace string) func(context.Context, client.Reader, *nodespec.Cluster) error {
	return func(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
		name := MetricsServing(namespace).String()
		secret := &corev1.Secret{}
		about, found, err := readOptional(ctx, reader, name, secret, "Secret "+name)
		if err != nil || !found {
			return err
		}
		certificate, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
		// The error is not passed on: it may tell of the key.
		if _, err := tls.X509KeyPair(certificate, key); err != nil {
			return about.error("keys "+corev1.TLSCertKey+" and "+corev1.TLSPrivateKeyKey,
				"they are not a certificate and its key in PEM. "+
					"Delete the Secret: the service CA operator creates it again.")
		}
		facts.MetricsServing = nodespec.ServingCertificate{Certificate: string(certificate), Key: nodespec.Secret(key)}
		return nil
	}
}
