package policy

import (
	"crypto/x509"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
)

type clientRequest struct {
	request  *x509.CertificateRequest
	nodeName string
}

// clientChecks are what a kubelet's client certificate must be.
var clientChecks = []check[clientRequest]{
	{"CommonName", refused, func(r clientRequest) string { return commonName(r.request, r.nodeName) }},
	{"Organization", refused, func(r clientRequest) string { return organization(r.request) }},
	{"Subject", refused, func(r clientRequest) string { return nothingElse(r.request) }},
	{"Key", refused, func(r clientRequest) string { return keyStrength(r.request) }},
	{"OtherNames", refused, func(r clientRequest) string { return noNames(r.request) }},
	{"Extensions", refused, func(r clientRequest) string { return noOtherExtensions(r.request) }},
}

// KubeletClientRequest decides whether the certificate request that came over the pinned connection of a host is exactly the request
// of the kubelet of that host's node.
func KubeletClientRequest(requestPEM []byte, nodeName string) Decision {
	request, problem := parseRequest(requestPEM)
	if problem != "" {
		return Decision{Check: "Form", Reason: refused, Message: problem}
	}
	return decide(clientRequest{request, nodeName}, "The request is that of the kubelet of node "+nodeName+".", clientChecks)
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
