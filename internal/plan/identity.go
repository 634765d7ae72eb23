package plan

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// certificateState is the state of an identity's certificate.
type certificateState struct {
	usable      bool   // the certificate on the host is valid for the identity; the kubelet's rotations are not checked
	installable bool   // the spec contains a certificate for the pending key on the host
	requested   bool   // a key with a request for this identity is pending on the host
	reason      string // reason why the certificate is not usable
}

// IdentityOf returns the facts of an identity; the name is empty for the kubelet.
func (f Facts) IdentityOf(name string) IdentityFacts {
	if name == "" {
		return f.Identity
	}
	return f.Identities[name]
}

func judgeCertificate(facts Facts, identity nodespec.Identity) certificateState {
	reason := currentReason(facts, identity)
	if reason == "" {
		return certificateState{usable: true}
	}
	return judgeRequest(facts, identity, reason)
}

// judgeRequest returns the state of a certificate that is needed for the given reason.
func judgeRequest(facts Facts, identity nodespec.Identity, reason string) certificateState {
	s := certificateState{reason: reason}
	request := parseRequest(facts.IdentityOf(identity.Name).Request)
	s.requested = request != nil && request.Subject.CommonName == identity.CommonName &&
		slices.Equal(request.Subject.Organization, []string{identity.Organization})
	s.installable = s.requested && isUsableCertificate(identity.Certificate, request, identity, facts.Time)
	return s
}

// currentReason returns the reason why the certificate on the host is not usable; empty if usable.
func currentReason(facts Facts, identity nodespec.Identity) string {
	current := facts.IdentityOf(identity.Name).Current
	switch {
	case current == nil:
		return certificateOwner(identity) + " has no certificate"
	case current.CommonName != identity.CommonName || !slices.Contains(current.Organization, identity.Organization):
		return certificateOwner(identity) + "'s certificate is for " + current.CommonName + ", not for " + identity.CommonName
	case !facts.Time.Before(current.NotAfter):
		return certificateOwner(identity) + "'s certificate expired at " + current.NotAfter.UTC().Format(time.RFC3339)
	}
	return ""
}

// certificateOwner returns the name of the certificate's owner for messages.
func certificateOwner(identity nodespec.Identity) string { return cmp.Or(identity.Name, "the kubelet") }

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

// isUsableCertificate reports whether a certificate is valid now and was signed for the request's key. Certificates
// for an earlier key are not usable.
func isUsableCertificate(text string, request *x509.CertificateRequest, identity nodespec.Identity, now time.Time) bool {
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

// judgeCertificates determines the certificate states of all identities.
func (m *planner) judgeCertificates() {
	m.certificates = map[string]certificateState{}
	for _, identity := range slices.Concat([]nodespec.Identity{m.spec.Identity}, m.spec.Identities) {
		state := judgeCertificate(m.facts, identity)
		m.certificates[identity.Name] = state
		m.unmet[nodespec.NeedCertificateOf(identity.Name)] = !state.usable && !state.installable
	}
}

// certificateNeeds returns the certificate needs of all identities, met or not, in the order of the spec.
func (m *planner) certificateNeeds() []nodespec.Need {
	needs := []nodespec.Need{nodespec.NeedCertificate}
	for _, identity := range m.spec.Identities {
		needs = append(needs, nodespec.NeedCertificateOf(identity.Name))
	}
	return needs
}

func (m *planner) requestCertificates() {
	for _, identity := range m.spec.AllIdentities() {
		if state := m.certificates[identity.Name]; !state.usable && !state.requested {
			m.addOperation(RequestCertificate{Identity: identity}, "%s", state.reason)
		}
	}
}

func (m *planner) installCertificates() {
	for _, identity := range m.spec.AllIdentities() {
		if state := m.certificates[identity.Name]; state.installable {
			m.addOperation(InstallCertificate{Identity: identity}, "%s", state.reason)
		}
	}
}

// Renew returns the plan that renews the certificates of the named identities of the spec while the current
// certificates stay in use. The plan creates a key and a request or, if the spec contains the certificate for a
// pending key, installs the certificate. The plan lists unmet needs. No service is restarted, because client-go
// programs reload their certificate. The kubelet renews its own certificate.
func Renew(facts Facts, spec nodespec.NodeSpec, names []string) Plan {
	m := &planner{facts: facts, spec: spec}
	var needs []nodespec.Need
	for _, identity := range spec.Identities {
		if !slices.Contains(names, identity.Name) {
			continue
		}
		switch state := judgeRequest(facts, identity, certificateOwner(identity)+"'s certificate is due for renewal"); {
		case state.installable:
			m.addOperation(InstallCertificate{Identity: identity}, "%s", state.reason)
		case !state.requested:
			m.addOperation(RequestCertificate{Identity: identity}, "%s", state.reason)
			fallthrough
		default:
			needs = append(needs, nodespec.NeedCertificateOf(identity.Name))
		}
	}
	return Plan{Steps: m.steps, Needs: needs}
}

func identityDirectories(spec nodespec.NodeSpec) []string {
	directories := []string{spec.Identity.Directory}
	for _, identity := range spec.Identities {
		directories = append(directories, identity.Directory)
	}
	return directories
}
