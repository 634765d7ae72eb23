package plan

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// certificateState is how the kubelet's certificate stands.
type certificateState struct {
	usable      bool   // the one on the host is right; whatever the kubelet made of it by rotation is its own business
	installable bool   // the spec brings one for the key that waits on the host
	requested   bool   // a key with a request for this identity waits on the host
	reason      string // why it is not usable
}

func judgeCertificate(facts Facts, identity nodespec.Identity) certificateState {
	s := certificateState{reason: currentReason(facts, identity)}
	if s.reason == "" {
		s.usable = true
		return s
	}
	request := parseRequest(facts.Identity.Request)
	s.requested = request != nil && request.Subject.CommonName == identity.CommonName &&
		slices.Equal(request.Subject.Organization, []string{identity.Organization})
	s.installable = s.requested && fits(identity.Certificate, request, identity, facts.Time)
	return s
}

// currentReason says why the certificate on the host is of no use; empty when it is.
func currentReason(facts Facts, identity nodespec.Identity) string {
	current := facts.Identity.Current
	switch {
	case current == nil:
		return "the kubelet has no certificate"
	case current.CommonName != identity.CommonName || !slices.Contains(current.Organization, identity.Organization):
		return "the kubelet's certificate is for " + current.CommonName + ", not for " + identity.CommonName
	case !facts.Time.Before(current.NotAfter):
		return "the kubelet's certificate expired at " + current.NotAfter.UTC().Format(time.RFC3339)
	}
	return ""
}

func parseRequest(text string) *x509.CertificateRequest {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil
	}
	return request
}

// fits tells whether a certificate is valid now and was signed for the request. One for an earlier key is of no use.
func fits(text string, request *x509.CertificateRequest, identity nodespec.Identity, now time.Time) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil || certificate.Subject.CommonName != identity.CommonName || !now.Before(certificate.NotAfter) {
		return false
	}
	key, ok := request.PublicKey.(*ecdsa.PublicKey)
	return ok && key.Equal(certificate.PublicKey)
}

func (m *maker) requestCertificate() {
	if m.spec.Identity.CommonName != "" && !m.certificate.usable && !m.certificate.requested {
		m.add(RequestCertificate{Identity: m.spec.Identity}, "%s", m.certificate.reason)
	}
}

func (m *maker) installCertificate() {
	if m.certificate.installable {
		m.add(InstallCertificate{Identity: m.spec.Identity}, "%s", m.certificate.reason)
	}
}
