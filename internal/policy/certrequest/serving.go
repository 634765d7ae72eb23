package certrequest

import (
	"encoding/asn1"
	"fmt"
	"net/netip"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// servingChecks are the checks of a kubelet's serving certificate.
var servingChecks = []policy.Check[nodeCSR]{
	{Name: "CommonNameMismatch", Reason: reasonRefused, Violation: func(a nodeCSR) string {
		return wrongCommonName(a.request, NodeUser(a.node.Name))
	}},
	{Name: "OrganizationMismatch", Reason: reasonRefused, Violation: func(a nodeCSR) string {
		return wrongOrganization(a.request, nodesOrganization)
	}},
	{Name: "SubjectInvalid", Reason: reasonRefused, Violation: func(a nodeCSR) string { return unexpectedSubject(a.request) }},
	{Name: "ExtensionsUnexpected", Reason: reasonRefused, Violation: func(a nodeCSR) string {
		return unexpectedExtensions(a.request)
	}},
	{Name: "NameTypesUnsupported", Reason: reasonRefused, Violation: unsupportedNameTypes},
	{Name: "NamesUnknown", Reason: reasonRefused, Violation: unknownNames},
	{Name: "AddressesUnknown", Reason: reasonRefused, Violation: unknownAddresses},
	{Name: "ClusterIdentity", Reason: reasonRefused, Violation: clusterIdentity},
	{Name: "ForeignIdentity", Reason: reasonRefused, Violation: foreignIdentity},
}

// judgeServing decides on a request for a kubelet's serving certificate.
func judgeServing(csr certificatesv1.CertificateSigningRequest, known Facts) Decision {
	const signer = certificatesv1.KubeletServingSignerName
	return judgeRequest(csr, known, signer, certificatesv1.UsageServerAuth, func(asked nodeCSR) policy.Decision {
		return policy.Decide(asked, "Node "+asked.node.Name+" requests a certificate for its own names and addresses.", servingChecks)
	})
}

// Tags of the two kinds of alternative names that a kubelet serves under. Source: RFC 5280, section 4.2.1.6,
// GeneralName.
const (
	tagDNSName   = 2
	tagIPAddress = 7
)

// unsupportedNameTypes checks the alternative names in the original form of the request, because crypto/x509 ignores
// unknown kinds.
func unsupportedNameTypes(a nodeCSR) string {
	if len(a.request.DNSNames)+len(a.request.IPAddresses) == 0 {
		return "The request contains neither a DNS name nor an address."
	}
	for _, extension := range a.request.Extensions {
		if !extension.Id.Equal(oidSubjectAlternativeName) {
			continue
		}
		var names []asn1.RawValue
		if !unmarshalAll(extension.Value, &names) {
			return "The request's alternative names cannot be parsed."
		}
		for _, name := range names {
			if name.Class != asn1.ClassContextSpecific || name.IsCompound || name.Tag != tagDNSName && name.Tag != tagIPAddress {
				return "The request contains alternative names other than DNS names and addresses, such as e-mail addresses or URIs, which a kubelet does not use."
			}
		}
	}
	return ""
}

func unknownNames(a nodeCSR) string {
	for _, name := range a.request.DNSNames {
		if !a.node.Assigned.HasName(name) && !a.node.Reported.HasName(name) {
			return fmt.Sprintf("The request contains the DNS name %.100q, which is not a known name of the node.", name)
		}
	}
	return ""
}

// ipAddresses returns the addresses in the request in their original form: an IPv4-mapped IPv6 address is not an IPv4
// address.
func (r *nodeRequest) ipAddresses() []netip.Addr {
	var addresses []netip.Addr
	for _, ip := range r.IPAddresses {
		address, _ := netip.AddrFromSlice(ip) // crypto/x509 has checked the length
		addresses = append(addresses, address)
	}
	return addresses
}

func unknownAddresses(a nodeCSR) string {
	for _, address := range a.request.ipAddresses() {
		switch {
		case a.node.CanServeAt(address):
		case a.node.RankAddress(address) == AddressReported:
			return fmt.Sprintf("The request contains the address %s, which only the host itself reports. "+
				"The operator has not reached the host at this address, no source assigns it, and it is not the address of the Node.", address)
		default:
			return fmt.Sprintf("The request contains the address %s, which is not a known address of the node.", address)
		}
	}
	return ""
}

// clusterIdentity rejects names and addresses of the cluster itself, and addresses that do not belong to a single
// host.
func clusterIdentity(a nodeCSR) string {
	for _, name := range a.request.DNSNames {
		if whose := nodename.ReservedName(name, a.cluster); whose != "" {
			return fmt.Sprintf("The request contains the DNS name %.100q, which is %s.", name, whose)
		}
		if a.cluster == nil && !a.node.Assigned.HasName(name) {
			return fmt.Sprintf("The request contains the DNS name %.100q, which only the host itself reports. "+
				"The operator cannot determine whether this name belongs to the cluster until it can read the cluster's configuration.", name)
		}
	}
	for _, address := range a.request.ipAddresses() {
		if whose := nodename.ReservedAddress(address, a.cluster); whose != "" {
			return fmt.Sprintf("The request contains the address %s, which is %s.", address, whose)
		}
		if a.cluster == nil && !a.node.Assigned.HasAddress(address) {
			return fmt.Sprintf("The request contains the address %s, which only the host itself reports. "+
				"The operator cannot determine whether this address belongs to the cluster until it can read the cluster's configuration.", address)
		}
	}
	return ""
}

// foreignIdentity rejects names and addresses of other nodes. A host reports its own addresses and may lie: it must
// neither get a certificate for the address of another node nor block that node by claiming the address. An address
// belongs to the node with the strongest evidence: a source assigned the address, the operator reached the host
// there, or only the host reports it. With equal evidence for two nodes, neither gets a certificate for the address.
func foreignIdentity(a nodeCSR) string {
	for _, other := range a.otherNodes {
		for _, name := range a.request.DNSNames {
			if other.Assigned.HasEquivalentName(name) || other.Reported.HasEquivalentName(name) && !a.node.Assigned.HasName(name) {
				return fmt.Sprintf("The request contains the DNS name %.100q, which node %s also has.", name, other.Name)
			}
		}
		for _, address := range a.request.ipAddresses() {
			if rank := other.RankAddress(address); rank != AddressUnknown && rank >= a.node.RankAddress(address) {
				return fmt.Sprintf("The request contains the address %s, which node %s also has.", address, other.Name)
			}
		}
	}
	return ""
}
