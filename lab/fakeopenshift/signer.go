package fakeopenshift

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Validity is the validity period of a certificate.
type Validity struct{ NotBefore, NotAfter time.Time }

// Signed is an issued certificate.
type Signed struct {
	// User is the user in the certificate, and SignerName the requested signer.
	User, SignerName string
	// Requester is the user that created the request.
	Requester string
	Leaf      *x509.Certificate
	// At is the time of the signature.
	At time.Time
}

// Signer signs approved requests instead of the controller manager, for control planes with
// cluster.Options.ExternalSigner. The controller manager always signs for the same time from now on, so that a
// test of renewals would take that long.
type Signer struct {
	authority tls.Certificate
	clock     clock.PassiveClock

	mu       sync.Mutex
	validity func(user string, now time.Time) Validity
	signed   []Signed
	holding  bool

	client   kubernetes.Interface
	requests certificateslisters.CertificateSigningRequestLister
}

// NewSigner returns a signer that uses the function for the validity of a user's certificates.
func NewSigner(authority tls.Certificate, now clock.PassiveClock,
	validity func(user string, now time.Time) Validity) *Signer {
	return &Signer{authority: authority, clock: now, validity: validity}
}

// SetValidity changes the validity of future certificates.
func (s *Signer) SetValidity(validity func(user string, now time.Time) Validity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.validity = validity
}

// HoldRenewals stops signing for users that already have a certificate of the same signer, as if renewals were
// broken. Their requests wait until release is called.
func (s *Signer) HoldRenewals() (release func()) {
	hold := func(holding bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.holding = holding
	}
	hold(true)
	return func() { hold(false) }
}

// isRenewalHeld reports whether a request must wait because the user already has a certificate.
func (s *Signer) isRenewalHeld(user, signer string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holding && slices.ContainsFunc(s.signed, func(c Signed) bool { return c.User == user && c.SignerName == signer })
}

// Signed returns the certificates signed so far, oldest first.
func (s *Signer) Signed() []Signed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.signed)
}

// DropSigned drops the certificates that Signed returns, to limit memory in labs with many certificates.
func (s *Signer) DropSigned() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signed = nil
}

// Run signs until ctx is done. An error means that the start failed.
func (s *Signer) Run(ctx context.Context, config *rest.Config, log *slog.Logger) (err error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "lab signer"
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("start the signer: %w", err)
	}
	factory := informers.NewSharedInformerFactory(s.client, 0)
	requests := factory.Certificates().V1().CertificateSigningRequests()
	s.requests = requests.Lister()
	signing := newController("signer", log, s.signRequest)
	if _, err := requests.Informer().AddEventHandler(signing.eventHandler()); err != nil {
		return fmt.Errorf("start the signer: %w", err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	signing.run(ctx)
	return nil
}

// signRequest signs one request if it is approved and valid for its signer.
func (s *Signer) signRequest(ctx context.Context, name string) error {
	request, err := s.requests.Get(name)
	if err != nil || len(request.Status.Certificate) > 0 || !isApproved(request) {
		return ignoreGone(err)
	}
	csr, err := parseRequest(request)
	if err != nil {
		return fmt.Errorf("sign request %s: %w", name, err)
	}
	usage, err := usageFor(request, csr)
	if err != nil {
		return fmt.Errorf("sign request %s: %w", name, err)
	}
	if s.isRenewalHeld(csr.Subject.CommonName, request.Spec.SignerName) {
		return fmt.Errorf("sign request %s: renewals are held back", name)
	}
	now := s.clock.Now()
	certificate, err := s.issueCertificate(csr, usage, s.validityOf(csr.Subject.CommonName, now))
	if err != nil {
		return fmt.Errorf("sign request %s: %w", name, err)
	}
	request = request.DeepCopy()
	request.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
	if _, err := s.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, request,
		metav1.UpdateOptions{}); err != nil {
		return ignoreGone(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signed = append(s.signed, Signed{
		User: csr.Subject.CommonName, SignerName: request.Spec.SignerName, Requester: request.Spec.Username,
		Leaf: certificate, At: now,
	})
	return nil
}

func (s *Signer) validityOf(user string, now time.Time) Validity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.validity(user, now)
}

func (s *Signer) issueCertificate(csr *x509.CertificateRequest, usage x509.ExtKeyUsage, validity Validity) (*x509.Certificate,
	error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: csr.Subject, DNSNames: csr.DNSNames, IPAddresses: csr.IPAddresses,
		NotBefore: validity.NotBefore, NotAfter: validity.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.authority.Leaf, csr.PublicKey, s.authority.PrivateKey)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// usageFor returns the key usage of certificates of the request's signer, or an error if the signer refuses the
// request.
func usageFor(request *certificatesv1.CertificateSigningRequest, csr *x509.CertificateRequest) (x509.ExtKeyUsage,
	error) {
	if err := csr.CheckSignature(); err != nil {
		return 0, fmt.Errorf("it is not signed with its own key: %w", err)
	}
	node := strings.HasPrefix(csr.Subject.CommonName, "system:node:") && slices.Equal(csr.Subject.Organization,
		[]string{"system:nodes"})
	usage, needed := x509.ExtKeyUsageClientAuth, certificatesv1.UsageClientAuth
	switch request.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientSignerName:
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		if !node || len(csr.DNSNames)+len(csr.IPAddresses) > 0 {
			return 0, errors.New("it is not that of a kubelet as a client")
		}
	case certificatesv1.KubeletServingSignerName:
		if !node || len(csr.DNSNames)+len(csr.IPAddresses) == 0 {
			return 0, errors.New("it is not that of a kubelet as a server")
		}
		usage, needed = x509.ExtKeyUsageServerAuth, certificatesv1.UsageServerAuth
	default:
		return 0, fmt.Errorf("nobody here signs for %s", request.Spec.SignerName)
	}
	if !slices.Contains(request.Spec.Usages, needed) {
		return 0, fmt.Errorf("it is not for %s", needed)
	}
	return usage, nil
}

func isApproved(request *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	})
}
