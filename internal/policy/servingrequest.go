package policy

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// KnownNode is a node of ours and what the operator itself knows it by.
type KnownNode struct {
	Name string
	// Names and Addresses are what may stand in its serving certificate.
	Names     []string
	Addresses []string
}

// AddSpecAddress adds the address under which the host is listed.
func (n *KnownNode) AddSpecAddress(address string) {
	if _, err := netip.ParseAddr(address); err == nil {
		n.Addresses = append(n.Addresses, address)
		return
	}
	n.Names = append(n.Names, address)
}

// Outcome is what happens to a request.
type Outcome string

// Outcomes. Nothing is ever denied: a denial is final, and others may have a say.
const (
	NotOurs Outcome = "NotOurs" // left alone
	Approve Outcome = "Approve"
	Refuse  Outcome = "Refuse" // left pending, with the reason
)

// RequestDecision is the decision on a CertificateSigningRequest.
type RequestDecision struct {
	Outcome Outcome
	// NodeName is the node of ours that it is about; empty when it is not ours.
	NodeName string
	Check    string
	Reason   string
	Message  string
}

type servingRequest struct {
	csr     certificatesv1.CertificateSigningRequest
	request *x509.CertificateRequest
	node    KnownNode
}

// ApproveServingRequest decides on a request for a kubelet's serving certificate. It is ours when a known node asks, by the identity that
// the API server has authenticated; no name in the request and no DNS decides that.
func ApproveServingRequest(csr certificatesv1.CertificateSigningRequest, known []KnownNode) RequestDecision {
	i := slices.IndexFunc(known, func(n KnownNode) bool { return csr.Spec.Username == nodeUser(n.Name) })
	if i < 0 || csr.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		return RequestDecision{Outcome: NotOurs}
	}
	decision := servingDecision(csr, known[i])
	outcome := Refuse
	if decision.Allowed {
		outcome = Approve
	}
	return RequestDecision{Outcome: outcome, NodeName: known[i].Name, Check: decision.Check, Reason: decision.Reason, Message: decision.Message}
}

func servingDecision(csr certificatesv1.CertificateSigningRequest, node KnownNode) Decision {
	const refused = "CertificateRequestRefused"
	request, err := parseRequest(csr.Spec.Request)
	if err != nil {
		return Decision{Check: "Form", Reason: refused, Message: err.Error()}
	}
	subject := servingRequest{csr, request, node}
	return decide(subject, "Node "+node.Name+" asks for its own names and addresses.", []check[servingRequest]{
		{"Group", refused, requesterGroup},
		{"CommonName", refused, func(r servingRequest) string { return commonName(r.request, r.node.Name) }},
		{"Organization", refused, func(r servingRequest) string { return organization(r.request) }},
		{"Usages", refused, servingUsages},
		{"Key", refused, func(r servingRequest) string { return keyStrength(r.request) }},
		{"Extensions", refused, func(r servingRequest) string { return noExtensions(r.request) }},
		{"OtherNames", refused, noMailOrURI},
		{"Names", refused, ownNames},
		{"Addresses", refused, ownAddresses},
	})
}

func requesterGroup(r servingRequest) string {
	if slices.Contains(r.csr.Spec.Groups, nodesOrganization) {
		return ""
	}
	return fmt.Sprintf("The requester %s is not in the group %s.", r.csr.Spec.Username, nodesOrganization)
}

// servingUsages allows what kubelets ask for: with RSA keys also key encipherment.
func servingUsages(r servingRequest) string {
	server := false
	for _, usage := range r.csr.Spec.Usages {
		switch usage {
		case certificatesv1.UsageServerAuth:
			server = true
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		default:
			return fmt.Sprintf("The request asks for the usage %q; a serving certificate has digital signature, key encipherment and server auth.", usage)
		}
	}
	if !server {
		return "The request does not ask for the usage server auth."
	}
	return ""
}

func noMailOrURI(r servingRequest) string {
	if len(r.request.EmailAddresses)+len(r.request.URIs) == 0 {
		return ""
	}
	return "The request holds e-mail addresses or URIs, which a kubelet does not serve."
}

func ownNames(r servingRequest) string {
	if len(r.request.DNSNames)+len(r.request.IPAddresses) == 0 {
		return "The request names neither a DNS name nor an address to serve."
	}
	for _, name := range r.request.DNSNames {
		if !slices.ContainsFunc(r.node.Names, func(own string) bool { return strings.EqualFold(own, name) }) {
			return fmt.Sprintf("The request holds the DNS name %q, which is not known to be the node's own.", name)
		}
	}
	return ""
}

func ownAddresses(r servingRequest) string {
	for _, address := range r.request.IPAddresses {
		if !slices.ContainsFunc(r.node.Addresses, func(own string) bool { return net.ParseIP(own).Equal(address) }) {
			return fmt.Sprintf("The request holds the address %s, which is not known to be the node's own.", address)
		}
	}
	return ""
}
