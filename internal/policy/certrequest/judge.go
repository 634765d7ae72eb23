// Package certrequest decides on the certificate requests of nodes: requests made by kubelets, and requests from the
// pinned connection of a host. The package compares a request exactly with the known facts about names and addresses:
// the source that assigned them, or only the host's own report. An identity is never derived from the request. The
// package signs and approves nothing.
package certrequest

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Outcome is the outcome of a decision on a request.
type Outcome string

// Outcomes.
const (
	Ignore  Outcome = "Ignore" // ignored
	Approve Outcome = "Approve"
	Refuse  Outcome = "Refuse" // left pending, with the reason
	// Later is for a request whose Node is not registered, or is not known to belong to the host. The request is left
	// pending and checked again after a change. Before a Node exists, no client calls the kubelet, and requests of
	// the host cannot be distinguished from requests of another host.
	Later Outcome = "Later"
	// Deny is for proven forgery only: a denial is final, and other approvers may be responsible for a request.
	Deny Outcome = "Deny"
)

// Decision is the decision on a CertificateSigningRequest.
type Decision struct {
	Outcome Outcome
	// NodeName is the managed node that made the request; empty if no managed node made it.
	NodeName string
	Check    string
	Reason   string
	Message  string
}

// Judge decides on any request of a kubelet. The operator handles a request if a managed node made it. The API server
// has authenticated the requester, so that this does not depend on a name in the request, a connection or DNS.
func Judge(csr certificatesv1.CertificateSigningRequest, known Facts) Decision {
	switch csr.Spec.SignerName {
	case certificatesv1.KubeletServingSignerName:
		return judgeServing(csr, known)
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		return judgeRenewal(csr, known)
	}
	return Decision{Outcome: Ignore}
}

// Requester returns the instance of the node that made a request. It returns nil if there is none and the operator
// must ignore the request. The operator sends no request to the API server before this is known.
func Requester(csr certificatesv1.CertificateSigningRequest,
	instances []v1alpha1.WindowsInstance) *v1alpha1.WindowsInstance {
	i := slices.IndexFunc(instances, func(i v1alpha1.WindowsInstance) bool {
		return nodeidentity.ShouldKeepNode(&i) && IsRequestOf(csr, i.Status.NodeRef.Name)
	})
	if i < 0 {
		return nil
	}
	return &instances[i]
}

// IsRequestOf reports whether a request may belong to the node, by its signer and requester. This suffices to ignore
// all other requests.
func IsRequestOf(csr certificatesv1.CertificateSigningRequest, nodeName string) bool {
	return IsKubeletSigner(csr.Spec.SignerName) && nodeName != "" && csr.Spec.Username == NodeUser(nodeName)
}

// IsKubeletSigner reports whether kubelets use a signer.
func IsKubeletSigner(signer string) bool {
	return signer == certificatesv1.KubeletServingSignerName ||
		signer == certificatesv1.KubeAPIServerClientKubeletSignerName
}
