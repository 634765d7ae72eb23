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

// apiServerCA reads what the API server's certificate is verified with. Kubernetes puts it into every namespace.
func apiServerCA(namespace string) func(context.Context, client.Reader, *nodespec.Cluster) error {
	return func(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) (err error) {
		facts.APIServerCA, err = readBundle(ctx, reader, namespace+"/kube-root-ca.crt", "ca.crt",
			"Kubernetes writes the API server's certificate authority to it in every namespace.")
		return err
	}
}

// readKubeletClientCA reads what kubelets verify their clients with. Newer releases keep it out of the Ignition, because it rotates, and
// in ControllerConfig instead.
func readKubeletClientCA(ctx context.Context, reader client.Reader, worker workerIgnition, id string, facts *nodespec.Cluster) error {
	content, found, err := worker.content(kubeletCAPath)
	if found && err == nil {
		facts.KubeletClientCA, err = certificates(content)
	}
	if err != nil {
		return &Error{Object: id, Field: "spec.config, file " + kubeletCAPath, Message: err.Error() +
			". It must hold the certificate authorities of the kubelets' clients in PEM."}
	}
	if found {
		return nil
	}
	const object, remedy = "ControllerConfig machine-config-controller", "It holds the certificate authorities of the kubelets' clients."
	config := &machineconfigv1.ControllerConfig{}
	if err := get(ctx, reader, "machine-config-controller", config, object, remedy); err != nil {
		return err
	}
	if facts.KubeletClientCA, err = certificates(config.Spec.KubeAPIServerServingCAData); err != nil {
		return &Error{Object: object, Field: "spec.kubeAPIServerServingCAData", Message: err.Error() + ". " + remedy}
	}
	return nil
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
		return "", &Error{Object: id, Field: "key " + key, Message: "the key is not there. " + remedy}
	}
	bundle, err := certificates([]byte(text))
	if err != nil {
		return "", &Error{Object: id, Field: "key " + key, Message: err.Error() + ". " + remedy}
	}
	return bundle, nil
}

// certificates returns the certificates of a PEM bundle and nothing else of it: no comments, and no key that got there by mistake.
func certificates(bundle []byte) (string, error) {
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
			return "", fmt.Errorf("it holds a certificate that cannot be read: %w", err)
		}
		if err := pem.Encode(&result, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return "", fmt.Errorf("encode a certificate: %w", err)
		}
	}
	if result.Len() == 0 {
		return "", errors.New("it holds no certificate in PEM")
	}
	return result.String(), nil
}

// splitName takes namespace/name or a name apart.
func splitName(name string) types.NamespacedName {
	namespace, rest, found := strings.Cut(name, "/")
	if !found {
		return types.NamespacedName{Name: name}
	}
	return types.NamespacedName{Namespace: namespace, Name: rest}
}
