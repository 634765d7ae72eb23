package certrequest

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/windows-machine-config/wmco/internal/policy"
)

// Identity is the user identity of a client certificate.
type Identity struct {
	// CommonName is the name of the user, and Organization the name of the user's only group.
	CommonName, Organization string
}

// kubeletIdentity returns the identity of a node's kubelet.
func kubeletIdentity(nodeName string) Identity {
	return Identity{CommonName: NodeUser(nodeName), Organization: nodesOrganization}
}

type clientRequest struct {
	request  *nodeRequest
	identity Identity
}

// clientChecks are the checks of the client certificate of a node's service.
var clientChecks = []policy.Check[clientRequest]{
	{Name: "CommonNameMismatch", Reason: reasonRefused, Violation: func(r clientRequest) string {
		return wrongCommonName(r.request, r.identity.CommonName)
	}},
	{Name: "OrganizationMismatch", Reason: reasonRefused, Violation: func(r clientRequest) string {
		return wrongOrganization(r.request, r.identity.Organization)
	}},
	{Name: "SubjectInvalid", Reason: reasonRefused, Violation: func(r clientRequest) string { return unexpectedSubject(r.request) }},
	{Name: "NamesUnexpected", Reason: reasonRefused, Violation: func(r clientRequest) string { return unexpectedNames(r.request) }},
	{Name: "ExtensionsUnexpected", Reason: reasonRefused, Violation: func(r clientRequest) string {
		return unexpectedExtensions(r.request)
	}},
}

// JudgeClient decides whether the certificate request from the pinned connection of a host is exactly the request for
// an identity in the NodeSpec of that host: this user, this group, a good key, and no other names or extensions. The
// identity never comes from the host.
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

// judgeRenewal decides on a kubelet's request to renew a client certificate. The operator handles a request made by a
// known node with the current certificate, and approves it for that node only. The first certificate of a node is not
// handled here: the request comes over the pinned connection of the host. A request by another client, for example
// with a bootstrap token, is ignored.
func judgeRenewal(csr certificatesv1.CertificateSigningRequest, known Facts) Decision {
	const signer = certificatesv1.KubeAPIServerClientKubeletSignerName
	return judgeRequest(csr, known, signer, certificatesv1.UsageClientAuth, func(asked nodeCSR) policy.Decision {
		return clientDecision(asked.request, kubeletIdentity(asked.node.Name))
	})
}
