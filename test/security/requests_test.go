package security

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// subject is the content of a certificate request.
type subject struct {
	user      string
	groups    []string
	names     []string
	addresses []string
}

// ofNode returns the subject of a node's kubelet.
func ofNode(name string) subject {
	return subject{user: "system:node:" + name, groups: []string{"system:nodes"}}
}

func (s subject) withServingNames(names []string, addresses ...string) subject {
	s.names, s.addresses = names, addresses
	return s
}

// newRequestPEM creates a certificate request in PEM form, with a new key.
func (s subject) newRequestPEM(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: s.user, Organization: s.groups}, DNSNames: s.names}
	for _, address := range s.addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// configAs returns a configuration that impersonates a user. This skips only the authentication.
func (l lab) configAs(user string, groups ...string) *rest.Config {
	config := rest.CopyConfig(l.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return config
}

// createRequest creates a CertificateSigningRequest, and returns the resource version.
func (l lab) createRequest(config *rest.Config, name, signer string, s subject) string {
	l.Helper()
	created, err := l.tryRequest(config, name, signer, s)
	l.requireNoError(err)
	return created.ResourceVersion
}

// tryRequest is like createRequest, for requests that the API server may refuse.
func (l lab) tryRequest(config *rest.Config, name, signer string, s subject) (*certificatesv1.CertificateSigningRequest, error) {
	purpose := certificatesv1.UsageClientAuth
	if signer == certificatesv1.KubeletServingSignerName {
		purpose = certificatesv1.UsageServerAuth
	}
	clientset, err := kubernetes.NewForConfig(config)
	l.requireNoError(err)
	return clientset.CertificatesV1().CertificateSigningRequests().Create(l.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: s.newRequestPEM(l.T), SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature,
					purpose},
			},
		}, metav1.CreateOptions{})
}

// requestsByName returns all certificate requests of the cluster, by name.
func (l lab) requestsByName() map[string]certificatesv1.CertificateSigningRequest {
	l.Helper()
	var list certificatesv1.CertificateSigningRequestList
	l.requireNoError(l.Client.List(l.Context(), &list))
	requests := map[string]certificatesv1.CertificateSigningRequest{}
	for _, request := range list.Items {
		requests[request.Name] = request
	}
	return requests
}

// checkOnlySignedFor checks that all certificate requests are for users of these nodes.
func (l lab) checkOnlySignedFor(nodes ...string) {
	l.Helper()
	var users []string
	for _, node := range nodes {
		users = append(users, "system:node:"+node, "system:ovn-node:"+node, "windowsmachineconfig.openshift.io:agent:"+node)
	}
	for name, request := range l.requestsByName() {
		block, _ := pem.Decode(request.Spec.Request)
		if block == nil {
			l.Fatalf("request %s is not in PEM form", name)
		}
		csr, err := x509.ParseCertificateRequest(block.Bytes)
		l.requireNoError(err)
		if user := csr.Subject.CommonName; !slices.Contains(users, user) {
			l.Errorf("request %s of %s is for %s: certificate of %d bytes, %+v", name, request.Spec.Username, user,
				len(request.Status.Certificate), request.Status.Conditions)
		}
	}
}
