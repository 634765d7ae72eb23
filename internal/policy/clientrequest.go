package policy

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
)

// nodesOrganization is the group of all nodes. Source: Kubernetes, "Using Node Authorization".
const nodesOrganization = "system:nodes"

// nodeUser is the user name of a node.
func nodeUser(nodeName string) string { return "system:node:" + nodeName }

type clientRequest struct {
	request  *x509.CertificateRequest
	nodeName string
}

// KubeletClientRequest decides whether the certificate request that came over the pinned connection of a host is exactly the request
// of the kubelet of that host's node.
func KubeletClientRequest(requestPEM []byte, nodeName string) Decision {
	request, err := parseRequest(requestPEM)
	if err != nil {
		return Decision{Check: "Form", Reason: "CertificateRequestRefused", Message: err.Error()}
	}
	const refused = "CertificateRequestRefused"
	return decide(clientRequest{request, nodeName}, "", []check[clientRequest]{
		{"CommonName", refused, func(r clientRequest) string { return commonName(r.request, r.nodeName) }},
		{"Organization", refused, func(r clientRequest) string { return organization(r.request) }},
		{"OtherNames", refused, func(r clientRequest) string { return noNames(r.request) }},
		{"Key", refused, func(r clientRequest) string { return keyStrength(r.request) }},
		{"Extensions", refused, func(r clientRequest) string { return noExtensions(r.request) }},
	})
}

func parseRequest(data []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return nil, fmt.Errorf("the host sent no certificate request in PEM form")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the certificate request cannot be read: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the certificate request is not signed with its own key: %w", err)
	}
	return request, nil
}

func commonName(r *x509.CertificateRequest, nodeName string) string {
	if r.Subject.CommonName == nodeUser(nodeName) {
		return ""
	}
	return fmt.Sprintf("The request is for %q; the node is %q.", r.Subject.CommonName, nodeUser(nodeName))
}

func organization(r *x509.CertificateRequest) string {
	if slices.Equal(r.Subject.Organization, []string{nodesOrganization}) && len(r.Subject.OrganizationalUnit) == 0 {
		return ""
	}
	return fmt.Sprintf("The request is for the groups %q; a node is in %q and nothing else.", r.Subject.Organization, nodesOrganization)
}

func noNames(r *x509.CertificateRequest) string {
	if len(r.DNSNames)+len(r.IPAddresses)+len(r.EmailAddresses)+len(r.URIs) == 0 {
		return ""
	}
	return "The request for a client certificate holds alternative names; a kubelet's has none."
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

// subjectAlternativeName is the one extension that a serving request has. Source: RFC 5280, section 4.2.1.6.
var subjectAlternativeName = []int{2, 5, 29, 17}

func noExtensions(r *x509.CertificateRequest) string {
	for _, extension := range r.Extensions {
		if !extension.Id.Equal(subjectAlternativeName) {
			return fmt.Sprintf("The request holds the extension %s, which a kubelet does not ask for.", extension.Id)
		}
	}
	return ""
}
