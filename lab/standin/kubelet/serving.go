package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/util/certificate"
)

// serving is the certificate of port 10250.
type serving struct {
	manager certificate.Manager // nil: the self-signed certificate is used
	self    *tls.Certificate
}

// newServing requests a certificate from the API server (serverTLSBootstrap), or creates a self-signed
// certificate.
func (k *kubelet) newServing(ctx context.Context) (*serving, error) {
	addresses := []net.IP{}
	if ip := net.ParseIP(k.config.nodeIP); ip != nil {
		addresses = append(addresses, ip)
	}
	template := &x509.CertificateRequest{Subject: k.certificateSubject(), DNSNames: []string{k.config.nodeName},
		IPAddresses: addresses}
	if !k.config.servingCSR {
		self, err := selfSigned(template, k.Clock.Now())
		if err != nil {
			return nil, fmt.Errorf("failed to make a self-signed serving certificate: %w", err)
		}
		return &serving{self: self}, nil
	}
	store, err := k.certificateStore("kubelet-server")
	if err != nil {
		return nil, err
	}
	manager, err := k.certificateManager(ctx, certificate.Config{
		GetTemplate: func() *x509.CertificateRequest {
			if len(addresses) == 0 {
				return nil // Like the real kubelet: no address, no request.
			}
			return template
		},
		SignerName:       certificatesv1.KubeletServingSignerName,
		GetUsages:        certificate.DefaultKubeletServingGetUsages,
		CertificateStore: store,
	})
	if err != nil {
		return nil, err
	}
	manager.Start()
	return &serving{manager: manager}, nil
}

func (s *serving) currentCertificate() (*tls.Certificate, error) {
	if s.manager == nil {
		return s.self, nil
	}
	if current := s.manager.Current(); current != nil {
		return current, nil
	}
	return nil, errors.New("no serving certificate available for the kubelet")
}

func (s *serving) stop() {
	if s.manager != nil {
		s.manager.Stop()
	}
}

func selfSigned(request *x509.CertificateRequest, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
