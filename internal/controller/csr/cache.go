package csr

import (
	"bytes"

	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/windows-machine-config/wmco/internal/policy/certrequest"
)

// Cached limits what a manager keeps in memory of CertificateSigningRequests. For an undecided request that a kubelet
// may have made itself, it keeps everything that the decision needs; for all others, only that they exist. A selector
// cannot do that: it names one signer, and kubelets ask two.
func Cached() cache.ByObject { return cache.ByObject{Transform: lean} }

// lean removes everything that no decision needs. A requester could make its requests large.
func lean(object any) (any, error) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return object, nil // one that was deleted unseen
	}
	csr.ManagedFields, csr.Annotations, csr.Labels = nil, nil, nil
	csr.Status.Certificate = nil
	spec := certificatesv1.CertificateSigningRequestSpec{SignerName: csr.Spec.SignerName, Username: csr.Spec.Username}
	if undecided(csr) && certrequest.KubeletSigner(csr.Spec.SignerName) {
		spec.Request, spec.Groups, spec.Usages, spec.ExpirationSeconds = csr.Spec.Request, csr.Spec.Groups, csr.Spec.Usages,
			csr.Spec.ExpirationSeconds
	}
	if len(spec.Request) > certrequest.Limit { // enough to see that it is too large
		spec.Request = bytes.Clone(spec.Request[:certrequest.Limit+1])
	}
	csr.Spec = spec
	for i := range csr.Status.Conditions {
		csr.Status.Conditions[i].Message = ""
	}
	return csr, nil
}

func undecided(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Conditions) == 0
}
