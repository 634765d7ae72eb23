package policy

import (
	"crypto/x509"
	"encoding/asn1"
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
	// Foreign nodes are not ours: nothing is approved for them, and nothing of theirs for ours.
	Foreign bool
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
	others  []KnownNode
}

// servingChecks are what a kubelet's serving certificate must be.
var servingChecks = []check[servingRequest]{
	{"Group", refused, func(r servingRequest) string { return requesterGroup(r.csr) }},
	{"Usages", refused, func(r servingRequest) string { return usages(r.csr, certificatesv1.UsageServerAuth) }},
	{"CommonName", refused, func(r servingRequest) string { return commonName(r.request, nodeUser(r.node.Name)) }},
	{"Organization", refused, func(r servingRequest) string { return organization(r.request, nodesOrganization) }},
	{"Subject", refused, func(r servingRequest) string { return nothingElse(r.request) }},
	{"Key", refused, func(r servingRequest) string { return keyStrength(r.request) }},
	{"Extensions", refused, func(r servingRequest) string { return noOtherExtensions(r.request) }},
	{"NamesAndAddressesOnly", refused, namesAndAddressesOnly},
	{"OwnNames", refused, ownNames},
	{"OwnAddresses", refused, ownAddresses},
	{"NobodyElses", refused, nobodyElses},
}

// ApproveServingRequest decides on a request for a kubelet's serving certificate. It is ours when a known node asks, by the identity that
// the API server has authenticated; no name in the request and no DNS decides that.
func ApproveServingRequest(csr certificatesv1.CertificateSigningRequest, known []KnownNode) RequestDecision {
	i := requester(csr, certificatesv1.KubeletServingSignerName, known)
	if i < 0 {
		return RequestDecision{Outcome: NotOurs}
	}
	request, problem := parseRequest(csr.Spec.Request)
	if problem != "" {
		return outcome(known[i], Decision{Check: "Form", Reason: refused, Message: problem})
	}
	others := slices.Delete(slices.Clone(known), i, i+1)
	subject := servingRequest{csr: csr, request: request, node: known[i], others: others}
	return outcome(known[i], decide(subject, "Node "+known[i].Name+" asks for its own names and addresses.", servingChecks))
}

// Tags of the two kinds of alternative names that a kubelet serves under. Source: RFC 5280, section 4.2.1.6, GeneralName.
const (
	tagDNSName   = 2
	tagIPAddress = 7
)

// namesAndAddressesOnly looks at the alternative names as they stand in the request: crypto/x509 leaves out kinds that it does not know.
func namesAndAddressesOnly(r servingRequest) string {
	if len(r.request.DNSNames)+len(r.request.IPAddresses) == 0 {
		return "The request names neither a DNS name nor an address to serve."
	}
	for _, extension := range r.request.Extensions {
		if !extension.Id.Equal(oidSubjectAlternativeName) {
			continue
		}
		var names []asn1.RawValue
		if rest, err := asn1.Unmarshal(extension.Value, &names); err != nil || len(rest) > 0 {
			return "The request's alternative names cannot be read."
		}
		for _, name := range names {
			if name.Class != asn1.ClassContextSpecific || name.Tag != tagDNSName && name.Tag != tagIPAddress {
				return "The request holds alternative names that are neither DNS names nor addresses, such as e-mail addresses or URIs, which a kubelet does not serve."
			}
		}
	}
	return ""
}

func ownNames(r servingRequest) string {
	for _, name := range r.request.DNSNames {
		if !r.node.hasName(name) {
			return fmt.Sprintf("The request holds the DNS name %.100q, which is not known to be the node's own.", name)
		}
	}
	return ""
}

func ownAddresses(r servingRequest) string {
	for _, address := range r.request.IPAddresses {
		if !r.node.hasAddress(address) {
			return fmt.Sprintf("The request holds the address %s, which is not known to be the node's own.", address)
		}
	}
	return ""
}

// nobodyElses refuses what another of our nodes has too: a host tells its own addresses, and one that lies must not be taken for another.
func nobodyElses(r servingRequest) string {
	for _, other := range r.others {
		if i := slices.IndexFunc(r.request.DNSNames, other.hasName); i >= 0 {
			return fmt.Sprintf("The request holds the DNS name %.100q, which node %s has too.", r.request.DNSNames[i], other.Name)
		}
		if i := slices.IndexFunc(r.request.IPAddresses, other.hasAddress); i >= 0 {
			return fmt.Sprintf("The request holds the address %s, which node %s has too.", r.request.IPAddresses[i], other.Name)
		}
	}
	return ""
}

func (n KnownNode) hasName(name string) bool {
	return name != "" && slices.ContainsFunc(n.Names, func(own string) bool { return strings.EqualFold(own, name) })
}

func (n KnownNode) hasAddress(address net.IP) bool {
	return slices.ContainsFunc(n.Addresses, func(own string) bool { return address.Equal(net.ParseIP(own)) })
}
