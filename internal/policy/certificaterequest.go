package policy

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// What every certificate request of a node must keep to, whatever it is for.

// nodesOrganization is the group of all nodes. Source: Kubernetes, "Using Node Authorization".
const nodesOrganization = "system:nodes"

// nodeUser is the user name of a node.
func nodeUser(nodeName string) string { return "system:node:" + nodeName }

// refused is the reason of every decision against a request.
const refused = v1alpha1.ReasonCertificateRefused

// Object identifiers of what a request may hold. Source: RFC 5280, appendix A, and section 4.2.1.6.
var (
	oidCommonName             = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization           = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidSubjectAlternativeName = asn1.ObjectIdentifier{2, 5, 29, 17}
)

// parseRequest reads a certificate request. The problem is empty when there is none.
func parseRequest(data []byte) (request *x509.CertificateRequest, problem string) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return nil, "There is no certificate request in PEM form."
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Sprintf("The certificate request cannot be read: %v.", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Sprintf("The certificate request is not signed with its own key: %v.", err)
	}
	return request, ""
}

// Values of a request are cut in messages: who asks chooses them.

func commonName(r *x509.CertificateRequest, user string) string {
	if r.Subject.CommonName == user {
		return ""
	}
	return fmt.Sprintf("The request is for %.100q; it may be for %q only.", r.Subject.CommonName, user)
}

func organization(r *x509.CertificateRequest, group string) string {
	if slices.Equal(r.Subject.Organization, []string{group}) {
		return ""
	}
	return fmt.Sprintf("The request is for the groups %.100q; it may be for %q and nothing else.", r.Subject.Organization, group)
}

// nothingElse allows one common name and one organization in the subject.
func nothingElse(r *x509.CertificateRequest) string {
	for _, name := range r.Subject.Names {
		if !name.Type.Equal(oidCommonName) && !name.Type.Equal(oidOrganization) {
			return fmt.Sprintf("The request's subject holds %s beside common name and organization.", name.Type)
		}
	}
	if len(r.Subject.Names) != 2 {
		return "The request's subject holds more than one common name or organization."
	}
	return ""
}

func keyStrength(r *x509.CertificateRequest) string {
	switch key := r.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if key.Curve.Params().BitSize >= 256 {
			return ""
		}
		return fmt.Sprintf("The key has %d bits; an ECDSA key needs 256.", key.Curve.Params().BitSize)
	case *rsa.PublicKey:
		if key.N.BitLen() >= 2048 {
			return ""
		}
		return fmt.Sprintf("The key has %d bits; an RSA key needs 2048.", key.N.BitLen())
	case ed25519.PublicKey:
		return ""
	}
	return fmt.Sprintf("The key is of type %s; ECDSA, RSA and Ed25519 are allowed.", r.PublicKeyAlgorithm)
}

// noNames allows no alternative names of any kind: a client is known by its subject.
func noNames(r *x509.CertificateRequest) string {
	for _, extension := range r.Extensions {
		if extension.Id.Equal(oidSubjectAlternativeName) {
			return "The request for a client certificate holds alternative names; that of a client has none."
		}
	}
	return ""
}

func noOtherExtensions(r *x509.CertificateRequest) string {
	for _, extension := range r.Extensions {
		if !extension.Id.Equal(oidSubjectAlternativeName) {
			return fmt.Sprintf("The request holds the extension %s, which none of a node needs.", extension.Id)
		}
	}
	return ""
}

// usages allows digital signature and the purpose, and key encipherment, which kubelets with RSA keys ask for too.
func usages(csr certificatesv1.CertificateSigningRequest, purpose certificatesv1.KeyUsage) string {
	asked := slices.Sorted(slices.Values(csr.Spec.Usages))
	least := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, purpose}
	for _, allowed := range [][]certificatesv1.KeyUsage{least, append(slices.Clone(least), certificatesv1.UsageKeyEncipherment)} {
		if slices.Equal(asked, slices.Sorted(slices.Values(allowed))) {
			return ""
		}
	}
	return fmt.Sprintf("The request asks for the usages %.100q; it must be %q and %q, with or without %q.",
		csr.Spec.Usages, certificatesv1.UsageDigitalSignature, purpose, certificatesv1.UsageKeyEncipherment)
}

// requesterGroup wants the group that the API server gives to who has a node's certificate.
func requesterGroup(csr certificatesv1.CertificateSigningRequest) string {
	if slices.Contains(csr.Spec.Groups, nodesOrganization) {
		return ""
	}
	return fmt.Sprintf("The requester %s is not in the group %s.", csr.Spec.Username, nodesOrganization)
}
