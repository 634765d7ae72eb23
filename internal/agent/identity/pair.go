// Package identity maintains the keys and certificates that the host's programs use for the API server. It
// creates keys with requests, installs signed certificates like the certificate store of client-go, and deletes
// former certificates. A key never leaves the host. NodeSpec and plan decide which identities exist and when
// certificates are renewed.
package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// BlockCertificate is the type of a PEM block with a certificate.
const BlockCertificate = "CERTIFICATE"

// Types of other PEM blocks.
const (
	pemRequest = "CERTIFICATE REQUEST"
	pemKey     = "EC PRIVATE KEY"
)

// currentLink returns the path of the current certificate of an identity, named as in the certificate store of
// client-go. It must be a symbolic link because the kubelet's first rotation refuses to replace a file.
func currentLink(identity nodespec.Identity) string {
	return identity.Path(nodespec.CurrentCertificate)
}

// PendingFile returns the path of the file with a key and its pending request.
func PendingFile(identity nodespec.Identity) string { return identity.Path("pending") }

// Pair is a private key with a certificate chain, leaf first, or a request.
type Pair struct {
	Key     *ecdsa.PrivateKey
	Chain   []*x509.Certificate
	request *x509.CertificateRequest
}

// newPending creates a key and a request for the identity.
func newPending(random io.Reader, identity nodespec.Identity) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, fmt.Errorf("generate the key of %s: %w", identity.CommonName, err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: identity.CommonName, Organization: []string{identity.Organization}}}
	request, err := x509.CreateCertificateRequest(random, template, key)
	if err != nil {
		return nil, fmt.Errorf("create the certificate request of %s: %w", identity.CommonName, err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: request}), encoded...), nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, errors.New("encode the private key of a certificate") // the cause could quote the key
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: encoded}), nil
}

// isRequestFor reports whether the request is for the identity.
func (p *Pair) isRequestFor(identity nodespec.Identity) bool {
	return p.request != nil && p.request.Subject.CommonName == identity.CommonName &&
		slices.Equal(p.request.Subject.Organization, []string{identity.Organization})
}

// parsePair parses a file with a key and a certificate or request; nil unless all parts match. Errors are
// discarded because they could quote the key.
func parsePair(data []byte) *Pair {
	p := &Pair{}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if p.addBlock(block) != nil {
			return nil
		}
	}
	if p.Key == nil || len(p.Chain) == 0 && p.request == nil {
		return nil
	}
	if len(p.Chain) > 0 && !p.Key.PublicKey.Equal(p.Chain[0].PublicKey) {
		return nil
	}
	if p.request != nil && !p.Key.PublicKey.Equal(p.request.PublicKey) {
		return nil
	}
	return p
}

func (p *Pair) addBlock(block *pem.Block) (err error) {
	switch block.Type {
	case BlockCertificate:
		var certificate *x509.Certificate
		certificate, err = x509.ParseCertificate(block.Bytes)
		p.Chain = append(p.Chain, certificate)
	case pemRequest:
		p.request, err = x509.ParseCertificateRequest(block.Bytes)
	case pemKey:
		p.Key, err = x509.ParseECPrivateKey(block.Bytes)
	case "PRIVATE KEY":
		var key any
		if key, err = x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			p.Key, _ = key.(*ecdsa.PrivateKey)
		}
	}
	return err
}

// RequestPEM returns the request in the encoding of the API.
func (p *Pair) RequestPEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: p.request.Raw}))
}
