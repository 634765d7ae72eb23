package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/util/keyutil"
)

// Authorities contains all signing authorities of the cluster and their bundles.
type Authorities struct {
	// Server signs the API server's serving certificate.
	Server *CA
	// Admin signs the client certificates of the control plane.
	Admin *CA
	// CSRSigner signs certificates for the CertificateSigningRequest API: client and serving certificates of
	// kubelets.
	CSRSigner *CA
	// ToKubelet signs the client certificate of the API server for requests to kubelets.
	ToKubelet *CA
	// FrontProxy signs the client certificate of the API server for requests to an aggregated API server.
	FrontProxy *CA

	// ClientBundleFile contains the authorities that the API server accepts for clients.
	ClientBundleFile string
	// KubeletClientBundle contains the authorities that a kubelet accepts for clients
	// (/etc/kubernetes/kubelet-ca.crt on a Linux worker).
	KubeletClientBundle []byte
	// ServiceAccountKeyFile is the key that signs the tokens of service accounts.
	ServiceAccountKeyFile string
}

// LoadOrCreate loads all authorities from dir, and creates the directory and missing authorities.
func LoadOrCreate(dir string) (*Authorities, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of certificates: %w", err)
	}
	a := &Authorities{
		ClientBundleFile:      filepath.Join(dir, "client-ca-bundle.crt"),
		ServiceAccountKeyFile: filepath.Join(dir, "service-account.key"),
	}
	for _, ca := range []struct {
		name string
		to   **CA
	}{
		{"kube-apiserver-server-ca", &a.Server},
		{"admin-kubeconfig-signer", &a.Admin},
		{"kube-csr-signer", &a.CSRSigner},
		{"kube-apiserver-to-kubelet-signer", &a.ToKubelet},
		{"aggregator-front-proxy-signer", &a.FrontProxy},
	} {
		var err error
		if *ca.to, err = LoadOrCreateCA(dir, ca.name); err != nil {
			return nil, err
		}
	}
	a.KubeletClientBundle = slices.Concat(a.ToKubelet.CertPEM, a.Admin.CertPEM)
	if err := WriteFile(filepath.Join(dir, "kubelet-client-ca-bundle.crt"), a.KubeletClientBundle); err != nil {
		return nil, err
	}
	if err := WriteFile(a.ClientBundleFile, slices.Concat(a.Admin.CertPEM, a.CSRSigner.CertPEM)); err != nil {
		return nil, err
	}
	return a, ensureServiceAccountKey(a.ServiceAccountKeyFile)
}

func ensureServiceAccountKey(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of service account tokens: %w", err)
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("encode the key of service account tokens: %w", err)
	}
	return WriteFile(file, data)
}
