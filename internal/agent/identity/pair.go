// Package identity keeps the keys and certificates that the host's programs have towards the API server: it makes keys
// with requests, puts signed certificates in place as client-go's certificate store does, and deletes former ones. A
// key never leaves the host. Which identities there are, and when one is renewed, is up to NodeSpec and plan.
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

// currentLink is a file in the directory of an identity. It has the name that client-go's certificate store knows; it
// must be a symbolic link, because the kubelet's first rotation refuses to replace a file.
func currentLink(identity nodespec.Identity) string {
	return identity.Path(nodespec.CurrentCertificate)
}

// PendingFile returns the path of the file in which a key waits for its certificate.
func PendingFile(identity nodespec.Identity) string { return identity.Path("pending") }

// Pair is a private key and what was made for it: a certificate chain, its leaf first, or a request.
type Pair struct {
	Key     *ecdsa.PrivateKey
	Chain   []*x509.Certificate
	request *x509.CertificateRequest
}

// newPending makes a key and a request for the identity.
func newPending(random io.Reader, identity nodespec.Identity) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, fmt.Errorf("make the key of %s: %w", identity.CommonName, err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: identity.CommonName, Organization: []string{identity.Organization}}}
	request, err := x509.CreateCertificateRequest(random, template, key)
	if err != nil {
		return nil, fmt.Errorf("make the request for the certificate of %s: %w", identity.CommonName, err)
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
		return nil, errors.New("encode the key of a certificate") // the cause could quote it
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: encoded}), nil
}

// matches reports whether the request asks for the identity.
func (p *Pair) matches(identity nodespec.Identity) bool {
	return p.request != nil && p.request.Subject.CommonName == identity.CommonName &&
		slices.Equal(p.request.Subject.Organization, []string{identity.Organization})
}

// parsePair reads a file with a key and a certificate or request; nil when it is none whose parts belong together.
// Errors are not passed on: they could quote the key.
func parsePair(data []byte) *Pair {
	p := &Pair{}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if p.add(block) != nil {
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

func (p *Pair) add(block *pem.Block) (err error) {
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

// RequestPEM returns the request as the API takes it.
func (p *Pair) RequestPEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: p.request.Raw}))
}
