package cluster

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
)

// CSRSigner returns the authority that signs CertificateSigningRequests. The API server trusts its certificates
// for clients and kubelets.
func (c *Cluster) CSRSigner() (tls.Certificate, error) {
	path := filepath.Join(c.Dir, "pki", "kube-csr-signer")
	signer, err := tls.LoadX509KeyPair(path+".crt", path+".key")
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the authority that signs certificate requests: %w", err)
	}
	return signer, nil
}
