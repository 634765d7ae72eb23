package policy

import (
	"crypto/x509"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// ClientIdentity is whom a client certificate is for.
type ClientIdentity struct {
	// CommonName is the name of the user, and Organization that of its one group.
	CommonName, Organization string
}

// KubeletIdentity is whom the kubelet of a node speaks for.
func KubeletIdentity(nodeName string) ClientIdentity {
	return ClientIdentity{CommonName: nodeUser(nodeName), Organization: nodesOrganization}
}

type clientRequest struct {
	request  *x509.CertificateRequest
	identity ClientIdentity
}

// clientChecks are what the client certificate of a node's service must be.
var clientChecks = []check[clientRequest]{
	{"CommonName", refused, func(r clientRequest) string { return commonName(r.request, r.identity.CommonName) }},
	{"Organization", refused, func(r clientRequest) string { return organization(r.request, r.identity.Organization) }},
	{"Subject", refused, func(r clientRequest) string { return nothingElse(r.request) }},
	{"Key", refused, func(r clientRequest) string { return keyStrength(r.request) }},
	{"OtherNames", refused, func(r clientRequest) string { return noNames(r.request) }},
	{"Extensions", refused, func(r clientRequest) string { return noOtherExtensions(r.request) }},
}

// ClientRequest decides whether the certificate request that came over the pinned connection of a host is exactly the request for an identity
// which the NodeSpec gives that host: this user, this group, a good key, and no names or extensions besides. The identity is never taken from
// what the host says.
func ClientRequest(requestPEM []byte, identity ClientIdentity) Decision {
	request, problem := parseRequest(requestPEM)
	if problem != "" {
		return Decision{Check: "Form", Reason: refused, Message: problem}
	}
	return decide(clientRequest{request, identity}, "The request is that of "+identity.CommonName+".", clientChecks)
}

// KubeletClientRequest is ClientRequest for the kubelet of a node.
func KubeletClientRequest(requestPEM []byte, nodeName string) Decision {
	return ClientRequest(requestPEM, KubeletIdentity(nodeName))
}

// ApproveClientRenewal decides on a kubelet's request to renew its client certificate. It is ours when a known node asks for it with the
// certificate that it has; then it may be for that node only. A node's first certificate is no matter of this function.
func ApproveClientRenewal(csr certificatesv1.CertificateSigningRequest, known []KnownNode) RequestDecision {
	i := requester(csr, certificatesv1.KubeAPIServerClientKubeletSignerName, known)
	if i < 0 {
		return RequestDecision{Outcome: NotOurs}
	}
	return outcome(known[i], renewalDecision(csr, known[i]))
}

func renewalDecision(csr certificatesv1.CertificateSigningRequest, node KnownNode) Decision {
	decision := decide(csr, "", []check[certificatesv1.CertificateSigningRequest]{
		{"Group", refused, requesterGroup},
		{"Usages", refused, func(csr certificatesv1.CertificateSigningRequest) string {
			return usages(csr, certificatesv1.UsageClientAuth)
		}},
	})
	if !decision.Allowed {
		return decision
	}
	return KubeletClientRequest(csr.Spec.Request, node.Name)
}

// requester is the index of the known node that asks the signer, by the identity that the API server has authenticated; -1 when it is
// none.
func requester(csr certificatesv1.CertificateSigningRequest, signer string, known []KnownNode) int {
	if csr.Spec.SignerName != signer {
		return -1
	}
	return slices.IndexFunc(known, func(n KnownNode) bool { return n.Name != "" && !n.Foreign && csr.Spec.Username == nodeUser(n.Name) })
}

func outcome(node KnownNode, decision Decision) RequestDecision {
	result := RequestDecision{Outcome: Refuse, NodeName: node.Name, Check: decision.Check, Reason: decision.Reason, Message: decision.Message}
	if decision.Allowed {
		result.Outcome = Approve
	}
	return result
}
