package robustness

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// nodeUser is the prefix of the user names of kubelets.
const nodeUser = "system:node:"

// forgeRequest requests a certificate as the kubelet of a host, with a name that the host does not own.
func (l *lab) forgeRequest(ctx context.Context, a Action) (func(context.Context) error, error) {
	user := nodeUser + l.Host(a.Host).NodeName()
	spec, err := newForgedRequest(l.Host(a.Host).NodeName(), a.Text)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(l.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:nodes", "system:authenticated"}}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	_, err = clients.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-forged-"}, Spec: spec,
	}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) && strings.HasPrefix(a.Text, nodeUser) {
		return nil, nil // NodeRestriction itself refuses another node's user name; see AllowInsecureKubeletCertificateSigningRequests.
	}
	return nil, err
}

// newForgedRequest creates the request of a node for a name: a client certificate with the user name of a node, or
// else a serving certificate with an address, a URI or a DNS name.
func newForgedRequest(node, name string) (spec certificatesv1.CertificateSigningRequestSpec, err error) {
	request := &x509.CertificateRequest{Subject: pkix.Name{CommonName: nodeUser + node, Organization: []string{"system:nodes"}}}
	spec.SignerName = certificatesv1.KubeletServingSignerName
	spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	switch ip := net.ParseIP(name); {
	case strings.HasPrefix(name, nodeUser):
		request.Subject.CommonName = name
		spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
		spec.Usages[1] = certificatesv1.UsageClientAuth
	case ip != nil:
		request.DNSNames, request.IPAddresses = []string{node}, []net.IP{ip}
	case strings.Contains(name, "://"):
		uri, err := url.Parse(name)
		if err != nil {
			return spec, fmt.Errorf("forge a request: %w", err)
		}
		request.DNSNames, request.URIs = []string{node}, []*url.URL{uri}
	default:
		request.DNSNames = []string{node, name}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return spec, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, request, key)
	spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return spec, err
}
