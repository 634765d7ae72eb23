package agent_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"time"
)

// authority signs like the signer of the cluster.
var authority = sync.OnceValue(func() *x509.Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test signer"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, authorityKey().Public(), authorityKey())
	if err != nil {
		panic(err)
	}
	certificate, err := x509.ParseCertificate(data)
	if err != nil {
		panic(err)
	}
	return certificate
})

var authorityKey = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})

func (r *rig) signRequest(request string) string {
	r.Helper()
	block, _ := pem.Decode([]byte(request))
	if block == nil {
		r.Fatalf("no certificate request: %q", request)
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	r.must(err)
	r.must(csr.CheckSignature())
	now := r.clock.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: csr.Subject, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(r.validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	data, err := x509.CreateCertificate(rand.Reader, template, authority(), csr.PublicKey, authorityKey())
	r.must(err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data}))
}
