package csr

import (
	"bytes"

	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/windows-machine-config/wmco/internal/policy/certrequest"
)

// Cached limits the cached data of CertificateSigningRequests. For undecided requests that a kubelet may have
// created itself, the cache contains all data for the decision; for all other requests, only the existence. A field
// selector cannot do this, because one selector matches one signer, and kubelets use two.
func Cached() cache.ByObject { return cache.ByObject{Transform: stripUnusedFields} }

// stripUnusedFields removes all data that no decision needs. A requester could create large requests.
func stripUnusedFields(object any) (any, error) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return object, nil // a tombstone of a missed deletion
	}
	csr.ManagedFields, csr.Annotations, csr.Labels = nil, nil, nil
	csr.Status.Certificate = nil
	spec := certificatesv1.CertificateSigningRequestSpec{SignerName: csr.Spec.SignerName, Username: csr.Spec.Username}
	if isUndecided(csr) && certrequest.IsKubeletSigner(csr.Spec.SignerName) {
		spec.Request, spec.Groups, spec.Usages, spec.ExpirationSeconds = csr.Spec.Request, csr.Spec.Groups, csr.Spec.Usages,
			csr.Spec.ExpirationSeconds
	}
	if len(spec.Request) > certrequest.MaxRequestSize { // enough to detect that it is too large
		spec.Request = bytes.Clone(spec.Request[:certrequest.MaxRequestSize+1])
	}
	csr.Spec = spec
	for i := range csr.Status.Conditions {
		csr.Status.Conditions[i].Message = ""
	}
	return csr, nil
}

func isUndecided(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Conditions) == 0
}
