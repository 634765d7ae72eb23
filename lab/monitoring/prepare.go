package monitoring

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate/csr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

//go:embed objects.yaml
var manifests []byte

// ConfigMaps with authorities, and their keys.
const (
	bundleName = "serving-certs-ca-bundle"
	bundleKey  = "service-ca.crt"

	managed     = "openshift-config-managed"
	kubeletsKey = "ca-bundle.crt"
	// servingName is the bundle that verifies serving certificates of kubelets, clientsName the bundle that
	// verifies clients of kubelets.
	servingName = "kubelet-serving-ca"
	clientsName = "kube-apiserver-client-ca"
)

// prepareMonitoring creates the objects, and writes the files of Prometheus' pod below root.
func prepareMonitoring(ctx context.Context, r *testenv.Environment, root string) error {
	objects, err := decodeObjects(manifests)
	if err != nil {
		return err
	}
	if err := r.ApplyObjects(ctx, objects); err != nil {
		return fmt.Errorf("make the objects of the cluster's monitoring: %w", err)
	}
	config, err := r.Cluster().ServiceAccountConfig(ctx, namespace, account)
	if err != nil {
		return err
	}
	services, err := serviceCA(ctx, r)
	if err != nil {
		return err
	}
	kubelets, err := readCABundle(ctx, r, servingName)
	if err != nil {
		return err
	}
	certificate, key, err := clientCertificate(ctx, r)
	if err != nil {
		return err
	}
	if err := admitToKubelets(ctx, r); err != nil {
		return err
	}
	for path, content := range map[string][]byte{
		"/var/run/secrets/kubernetes.io/serviceaccount/token":                     []byte(config.BearerToken),
		"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt":                    config.CAData,
		"/etc/prometheus/configmaps/" + bundleName + "/" + bundleKey:              services,
		"/etc/prometheus/configmaps/" + servingName + "-bundle/" + kubeletsKey:    []byte(kubelets),
		"/etc/prometheus/secrets/metrics-client-certs/" + corev1.TLSCertKey:       certificate,
		"/etc/prometheus/secrets/metrics-client-certs/" + corev1.TLSPrivateKeyKey: key,
	} {
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("write the files of Prometheus' pod: %w", err)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return fmt.Errorf("write the files of Prometheus' pod: %w", err)
		}
	}
	return nil
}

func decodeObjects(data []byte) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the objects of the cluster's monitoring: %w", err)
		}
		objects = append(objects, object)
	}
}

// serviceCA waits for the certificate of the service CA.
func serviceCA(ctx context.Context, r *testenv.Environment) (bundle []byte, err error) {
	err = r.WaitFor(ctx, "the certificate of the service CA in ConfigMap "+bundleName, &corev1.ConfigMap{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			m := &corev1.ConfigMap{}
			err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: bundleName}, m)
			bundle = []byte(m.Data[bundleKey])
			return len(bundle) > 0, client.IgnoreNotFound(err)
		})
	return bundle, err
}

// readCABundle returns a CA bundle related to kubelets.
func readCABundle(ctx context.Context, r *testenv.Environment, name string) (string, error) {
	m := &corev1.ConfigMap{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: managed, Name: name}, m); err != nil {
		return "", fmt.Errorf("read the authorities in ConfigMap %s/%s: %w", managed, name, err)
	}
	return m.Data[kubeletsKey], nil
}

// admitToKubelets adds the authority of Prometheus' certificate to the client CAs of kubelets, as in OpenShift.
// The kubelets still authorize requests with the API server.
func admitToKubelets(ctx context.Context, r *testenv.Environment) error {
	signer, err := r.Cluster().CSRSigner()
	if err != nil {
		return err
	}
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signer.Leaf.Raw}))
	known, err := readCABundle(ctx, r, clientsName)
	if err != nil || strings.Contains(known, authority) {
		return err
	}
	_, err = r.SetKubeletClientCAs(ctx, known+authority)
	return err
}

// clientCertificate requests the client certificate of Prometheus for scraping, as the
// cluster-monitoring-operator does.
func clientCertificate(ctx context.Context, r *testenv.Environment) (certificate, key []byte, err error) {
	clients, err := kubernetes.NewForConfig(r.Config)
	if err != nil {
		return nil, nil, err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:serviceaccount:" + namespace + ":" + account}}, private)
	if err != nil {
		return nil, nil, fmt.Errorf("request a client certificate: %w", err)
	}
	name, uid, err := csr.RequestCertificateWithContext(ctx, clients,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}), "",
		certificatesv1.KubeAPIServerClientSignerName, nil,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, private)
	if err != nil {
		return nil, nil, fmt.Errorf("request a client certificate: %w", err)
	}
	if err := approveRequest(ctx, r, name); err != nil {
		return nil, nil, err
	}
	if certificate, err = csr.WaitForCertificate(ctx, clients, name, uid); err != nil {
		return nil, nil, fmt.Errorf("wait for the client certificate: %w", err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), err
}

func approveRequest(ctx context.Context, r *testenv.Environment, name string) error {
	request := &certificatesv1.CertificateSigningRequest{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, request); err != nil {
		return fmt.Errorf("approve the request for a client certificate: %w", err)
	}
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ClusterMonitoring",
		Message: "Prometheus of the lab"})
	if err := r.Client.SubResource("approval").Update(ctx, request); err != nil {
		return fmt.Errorf("approve the request for a client certificate: %w", err)
	}
	return nil
}
