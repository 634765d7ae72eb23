package cluster

import (
	"context"
	"crypto/tls"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// metricsServingSecret is the Secret that the cluster's service CA creates for the certificate requested by the
// Service windows-exporter.
const metricsServingSecret = "windows-machine-config-operator-tls"

// MetricsServing returns the Secret with the serving certificate of the exporters on Windows nodes.
func MetricsServing(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: metricsServingSecret}
}

// unusableServing returns the fault of the Secret of MetricsServing, or nil.
func unusableServing(secret *corev1.Secret) *Notice {
	// The error is discarded because it may reveal parts of the key.
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

// keepsCertificates describes the exporters while the cluster's certificate, or the authorities of clients, are
// unusable.
const keepsCertificates = " Until then, exporters keep the certificates that they have."

// readMetricsServing reads the certificate of the exporters. Without a certificate, exporters serve plain HTTP.
// An unusable certificate is replaced by the former one, with a notice. Without a former certificate, the fault
// is an error, so that no exporter falls back from HTTPS to plain HTTP.
func (n *notices) readMetricsServing(namespace string, former nodespec.ServingCertificate) func(context.Context, client.Reader, *nodespec.Cluster) error {
	return func(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
		name := MetricsServing(namespace).String()
		secret := &corev1.Secret{}
		_, found, err := readOptional(ctx, reader, name, secret, "Secret "+name)
		if err != nil || !found {
			return err
		}
		facts.MetricsServing = nodespec.ServingCertificate{
			Certificate: string(secret.Data[corev1.TLSCertKey]), Key: nodespec.Secret(secret.Data[corev1.TLSPrivateKeyKey]),
		}
		if fault := unusableServing(secret); fault != nil {
			if former.Certificate == "" {
				return &Error{Object: fault.Object, Field: fault.Field, Message: fault.Message}
			}
			fault.Message += keepsCertificates
			*n = append(*n, *fault)
			facts.MetricsServing = nodespec.ServingCertificate{Certificate: former.Certificate, Key: former.Key}
		}
		return n.readMetricsClients(ctx, reader, former, facts)
	}
}
