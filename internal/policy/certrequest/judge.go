// Package certrequest decides on the certificate requests of nodes: those that kubelets make themselves, and those that
// come over the pinned connection of a host. It compares a request exactly with the known facts about names and
// addresses: which source assigned them, and which are only a host's own report. It never takes an identity from the
// request, and signs and approves nothing itself.
package certrequest

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Outcome is what happens to a request.
type Outcome string

// Outcomes.
const (
	NotOurs Outcome = "NotOurs" // left alone
	Approve Outcome = "Approve"
	Refuse  Outcome = "Refuse" // left pending, with the reason
	// Later is a request whose Node is not registered, or not the host's own as far as is known. It is left pending and
	// looked at again when that has changed. Before there is a Node nobody calls its kubelet, and nothing tells the
	// requests of its host from those of another.
	Later Outcome = "Later"
	// Deny is for proven forgery. A denial is final and others may have a say, so that nothing else is ever denied.
	Deny Outcome = "Deny"
)

// Decision is the decision on a CertificateSigningRequest.
type Decision struct {
	Outcome Outcome
	// NodeName is the node of ours that it is about; empty when it is not ours.
	NodeName string
	Check    string
	Reason   string
	Message  string
}

// Judge decides on any request of a kubelet. A request is ours when one of our nodes has made it: the API server has
// authenticated the requester, so that does not depend on a name in the request, a connection or DNS.
func Judge(csr certificatesv1.CertificateSigningRequest, known Facts) Decision {
	switch csr.Spec.SignerName {
	case certificatesv1.KubeletServingSignerName:
		return judgeServing(csr, known)
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		return judgeRenewal(csr, known)
	}
	return Decision{Outcome: NotOurs}
}

// Requester returns the instance whose node has made a request; nil when there is none, and the request is not ours. No
// request is sent to the API server before that is known.
func Requester(csr certificatesv1.CertificateSigningRequest,
	instances []v1alpha1.WindowsInstance) *v1alpha1.WindowsInstance {
	i := slices.IndexFunc(instances, func(i v1alpha1.WindowsInstance) bool {
		return nodeidentity.KeepsNode(&i) && AsksFor(csr, i.Status.NodeRef.Name)
	})
	if i < 0 {
		return nil
	}
	return &instances[i]
}

// AsksFor reports whether a request may belong to the node, by its signer and requester. That is enough to leave all
// other requests alone.
func AsksFor(csr certificatesv1.CertificateSigningRequest, nodeName string) bool {
	return KubeletSigner(csr.Spec.SignerName) && nodeName != "" && csr.Spec.Username == NodeUser(nodeName)
}

// KubeletSigner reports whether a signer is one that kubelets ask.
func KubeletSigner(signer string) bool {
	return signer == certificatesv1.KubeletServingSignerName ||
		signer == certificatesv1.KubeAPIServerClientKubeletSignerName
}
