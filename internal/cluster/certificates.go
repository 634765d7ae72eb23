package cluster

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// apiServerCA reads the authorities of the API server's certificate. Kubernetes writes them into every
// namespace.
func apiServerCA(namespace string) func(context.Context, client.Reader, *nodespec.Cluster) error {
	return func(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) (err error) {
		facts.APIServerCA, err = readBundle(ctx, reader, APIServerCA(namespace).String(), apiServerCAKey,
			"Kubernetes writes the certificate authority of the API server to this ConfigMap in every namespace.")
		return err
	}
}

// readKubeletClientCA reads the authorities of the kubelets' clients. The authorities rotate, and
// ControllerConfig contains the newest, which the machine config server also provides to new workers regardless
// of the Ignition of their pool. The Ignition of a paused pool is old, and newer releases omit the authorities
// there. The Ignition is used only if ControllerConfig has no authorities.
func readKubeletClientCA(ctx context.Context, reader client.Reader, worker workerIgnition, id string,
	facts *nodespec.Cluster) error {
	const object, field = "ControllerConfig " + controllerConfig, "spec.kubeAPIServerServingCAData"
	const remedy = "It contains the certificate authorities of the kubelets' clients."
	config := &machineconfigv1.ControllerConfig{}
	err := get(ctx, reader, controllerConfig, config, object, remedy)
	bundle := config.Spec.KubeAPIServerServingCAData
	if err == nil && len(bundle) > 0 {
		if facts.KubeletClientCA, err = extractCertificates(bundle); err != nil {
			return &Error{Object: object, Field: field, Message: err.Error() + ". " + remedy}
		}
		return nil
	}
	var fault *Error
	if err != nil && !errors.As(err, &fault) {
		return err
	}
	content, found, fileErr := worker.fileContent(kubeletCAPath)
	if found && fileErr == nil {
		facts.KubeletClientCA, fileErr = extractCertificates(content)
	}
	switch {
	case fileErr != nil:
		return &Error{Object: id, Field: "spec.config, file " + kubeletCAPath, Message: fileErr.Error() +
			". It must contain the certificate authorities of the kubelets' clients in PEM."}
	case found:
		return nil
	case err != nil:
		return err
	}
	return &Error{Object: object, Field: field, Message: "it is empty. " + remedy}
}

// readBundle reads the certificates under a key of a ConfigMap.
func readBundle(ctx context.Context, reader client.Reader, name, key, remedy string) (string, error) {
	id := "ConfigMap " + name
	configMap := &corev1.ConfigMap{}
	if err := get(ctx, reader, name, configMap, id, remedy); err != nil {
		return "", err
	}
	text, ok := configMap.Data[key]
	if !ok {
		return "", &Error{Object: id, Field: "key " + key, Message: "the key does not exist. " + remedy}
	}
	bundle, err := extractCertificates([]byte(text))
	if err != nil {
		return "", &Error{Object: id, Field: "key " + key, Message: err.Error() + ". " + remedy}
	}
	return bundle, nil
}

// extractCertificates returns only the certificates of a PEM bundle, without comments, and without a key that was
// added by mistake.
func extractCertificates(bundle []byte) (string, error) {
	var result bytes.Buffer
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return "", fmt.Errorf("it contains a certificate that cannot be read: %w", err)
		}
		if err := pem.Encode(&result, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return "", fmt.Errorf("encode a certificate: %w", err)
		}
	}
	if result.Len() == 0 {
		return "", errors.New("it contains no certificate in PEM")
	}
	return result.String(), nil
}

// splitName splits namespace/name, or returns a name without namespace.
func splitName(name string) types.NamespacedName {
	namespace, rest, found := strings.Cut(name, "/")
	if !found {
		return types.NamespacedName{Name: name}
	}
	return types.NamespacedName{Namespace: namespace, Name: rest}
}
