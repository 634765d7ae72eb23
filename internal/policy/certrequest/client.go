package certrequest

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/windows-machine-config/wmco/internal/policy"
)

// Identity is the user that a client certificate is for.
type Identity struct {
	// CommonName is the name of the user, and Organization that of its one group.
	CommonName, Organization string
}

// kubeletIdentity is the identity of a node's kubelet.
func kubeletIdentity(nodeName string) Identity {
	return Identity{CommonName: NodeUser(nodeName), Organization: nodesOrganization}
}

type clientRequest struct {
	request  *nodeRequest
	identity Identity
}

// clientChecks are what the client certificate of a node's service must be.
var clientChecks = []policy.Check[clientRequest]{
	{Name: "CommonName", Reason: refused, Broken: func(r clientRequest) string {
		return commonName(r.request, r.identity.CommonName)
	}},
	{Name: "Organization", Reason: refused, Broken: func(r clientRequest) string {
		return organization(r.request, r.identity.Organization)
	}},
	{Name: "Subject", Reason: refused, Broken: func(r clientRequest) string { return nothingElse(r.request) }},
	{Name: "OtherNames", Reason: refused, Broken: func(r clientRequest) string { return noNames(r.request) }},
	{Name: "Extensions", Reason: refused, Broken: func(r clientRequest) string {
		return noOtherExtensions(r.request)
	}},
}

// JudgeClient decides whether the certificate request that came over the pinned connection of a host is exactly the
// request for an identity that the NodeSpec gives that host: this user, this group, a good key, and no other names or
// extensions. The identity never comes from the host.
func JudgeClient(requestPEM []byte, identity Identity) policy.Decision {
	request, failed := parseRequest(requestPEM)
	if request == nil {
		return failed
	}
	return clientDecision(request, identity)
}

func clientDecision(request *nodeRequest, identity Identity) policy.Decision {
	return policy.Decide(clientRequest{request, identity}, "The request belongs to "+identity.CommonName+".", clientChecks)
}

// judgeRenewal decides on a kubelet's request to renew its client certificate. It is ours when a known node asks for it
// with the certificate that it has; then it may be for that node only. A node's first certificate is no matter of this
// function: its request comes over the pinned connection of its host, and one that somebody else makes, with a
// bootstrap token say, is not ours.
func judgeRenewal(csr certificatesv1.CertificateSigningRequest, known Facts) Decision {
	const signer = certificatesv1.KubeAPIServerClientKubeletSignerName
	return judge(csr, known, signer, certificatesv1.UsageClientAuth, func(asked askedFor) policy.Decision {
		return clientDecision(asked.request, kubeletIdentity(asked.node.Name))
	})
}
