package policy

import (
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
	request  *nodeRequest
	identity ClientIdentity
}

// clientChecks are what the client certificate of a node's service must be.
var clientChecks = []check[clientRequest]{
	{"CommonName", refused, func(r clientRequest) string { return commonName(r.request, r.identity.CommonName) }},
	{"Organization", refused, func(r clientRequest) string { return organization(r.request, r.identity.Organization) }},
	{"Subject", refused, func(r clientRequest) string { return nothingElse(r.request) }},
	{"OtherNames", refused, func(r clientRequest) string { return noNames(r.request) }},
	{"Extensions", refused, func(r clientRequest) string { return noOtherExtensions(r.request) }},
}

// ClientRequest decides whether the certificate request that came over the pinned connection of a host is exactly the request for an identity
// which the NodeSpec gives that host: this user, this group, a good key, and no names or extensions besides. The identity is never taken from
// what the host says.
func ClientRequest(requestPEM []byte, identity ClientIdentity) Decision {
	request, failed := parseRequest(requestPEM)
	if request == nil {
		return failed
	}
	return clientDecision(request, identity)
}

func clientDecision(request *nodeRequest, identity ClientIdentity) Decision {
	return decide(clientRequest{request, identity}, "The request is that of "+identity.CommonName+".", clientChecks)
}

// KubeletClientRequest is ClientRequest for the kubelet of a node.
func KubeletClientRequest(requestPEM []byte, nodeName string) Decision {
	return ClientRequest(requestPEM, KubeletIdentity(nodeName))
}

// ApproveClientRenewal decides on a kubelet's request to renew its client certificate. It is ours when a known node asks for it with the
// certificate that it has; then it may be for that node only. A node's first certificate is no matter of this function: its request comes over
// the pinned connection of its host, and one that somebody else makes, with a bootstrap token say, is not ours.
func ApproveClientRenewal(csr certificatesv1.CertificateSigningRequest, known Knowledge) RequestDecision {
	return approve(csr, known, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, func(asked askedFor) Decision {
		return clientDecision(asked.request, KubeletIdentity(asked.node.Name))
	})
}
