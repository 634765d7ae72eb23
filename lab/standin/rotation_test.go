package standin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
)

// rotationCheckInterval is the interval at which a kubelet checks for a rotated certificate.
const rotationCheckInterval = 5 * time.Second

// newAgedCertificate returns a user certificate that is due for rotation, and the key, both in PEM.
func (h *clusterHost) newAgedCertificate(user pkix.Name) (certificatePEM, keyPEM []byte) {
	h.t.Helper()
	signer, err := tls.LoadX509KeyPair(filepath.Join(h.cluster.Dir, "pki", "kube-csr-signer.crt"),
		filepath.Join(h.cluster.Dir, "pki", "kube-csr-signer.key"))
	if err != nil {
		h.t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(4711), Subject: user,
		NotBefore: time.Now().Add(-100 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, signer.Leaf, &key.PublicKey, signer.PrivateKey)
	if err != nil {
		h.t.Fatal(err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		h.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM
}

// ageCertificate replaces the kubelet's certificate with a certificate that is due for rotation.
func (h *clusterHost) ageCertificate() {
	h.t.Helper()
	aged, key := h.newAgedCertificate(pkix.Name{CommonName: "system:node:" + h.node, Organization: []string{"system:nodes"}})
	if err := os.RemoveAll(h.pki); err != nil {
		h.t.Fatal(err)
	}
	if err := os.MkdirAll(h.pki, 0o700); err != nil {
		h.t.Fatal(err)
	}
	store, err := certificate.NewFileStoreWithLogger(klog.Logger{}, "kubelet-client", h.pki, h.pki, "", "")
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := store.Update(aged, key); err != nil {
		h.t.Fatal(err)
	}
}

// countRequests returns the number of the node's requests for a new client certificate.
func (h *clusterHost) countRequests(ctx context.Context) (count int) {
	list, err := h.admin.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0
	}
	for _, request := range list.Items {
		if request.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName &&
			request.Spec.Username == "system:node:"+h.node {
			count++
		}
	}
	return count
}

// linkPath returns the path of the link in the file store.
func (h *clusterHost) linkPath() string { return filepath.Join(h.pki, "kubelet-client-current.pem") }

// currentCertificate returns the content behind the file store's link.
func (h *clusterHost) currentCertificate(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(h.linkPath())
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestKubelet_RotatesCertificate(t *testing.T) {
	t.Run("a certificate that is due is renewed in the file store, and the kubelet goes on with it", func(t *testing.T) {
		ticking := clocktesting.NewFakeClock(time.Now())
		h := newClusterHost(t, "win-rotates", Options{Clock: ticking})
		h.ageCertificate()
		aged := h.currentCertificate(t)
		h.start("kubelet")
		h.pollCondition("the link leads to the next certificate", func(context.Context) (bool, error) {
			content, err := os.ReadFile(h.linkPath())
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil // client-go removes the link before creating the next one
			}
			return string(content) != aged, err
		})
		h.pollCondition("its connections are made anew", func(context.Context) (bool, error) {
			ticking.Step(rotationCheckInterval)
			return strings.Contains(h.read(`C:\var\log\kubelet\kubelet.log`), "Certificate rotation detected"), nil
		})
	})
	t.Run("a current certificate that is a plain file and no link cannot be renewed", func(t *testing.T) {
		h := newClusterHost(t, "win-plain", Options{})
		h.ageCertificate()
		current := h.linkPath()
		content, err := os.ReadFile(current)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(current); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(current, content, 0o600); err != nil {
			t.Fatal(err)
		}
		h.start("kubelet")
		h.pollCondition("the failure is in the log", func(ctx context.Context) (bool, error) {
			return h.countRequests(ctx) > 0 && strings.Contains(h.read(`C:\var\log\kubelet\kubelet.log`), "symlink"), nil
		})
	})
}
