// Package pki creates the certificate authorities and certificates of the lab's control plane.
//
// There are as many authorities as in a real OpenShift cluster. A mistake, for example exchanging the CA of the
// API server's clients and the CA of the API server, therefore fails in the lab as in a real cluster.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/keyutil"
)

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	leafLifetime = 365 * 24 * time.Hour
	// backdate is the time between the start of a certificate's validity and now, for hosts with slow clocks.
	backdate = time.Hour
)

// CA is a certificate authority with certificate and key in files.
type CA struct {
	CertFile, KeyFile string
	CertPEM           []byte

	cert *x509.Certificate
	key  crypto.Signer
}

// Pair is a certificate with its key, in files and in memory.
type Pair struct {
	CertFile, KeyFile string
	CertPEM, KeyPEM   []byte
}

// Request describes a certificate.
type Request struct {
	CommonName   string
	Organization []string
	// Hosts are the DNS names and IP addresses of a server. Without hosts, the certificate is a client
	// certificate.
	Hosts []string
}

// LoadOrCreateCA loads the authority <dir>/<name>.crt and .key, or creates a missing authority. An authority
// survives a restart of the control plane; otherwise all issued certificates would become invalid.
func LoadOrCreateCA(dir, name string) (*CA, error) {
	ca := &CA{CertFile: filepath.Join(dir, name+".crt"), KeyFile: filepath.Join(dir, name+".key")}
	certPEM, err := os.ReadFile(ca.CertFile)
	if errors.Is(err, fs.ErrNotExist) {
		return ca, ca.create(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read certificate authority %s: %w", name, err)
	}
	return ca, ca.load(certPEM)
}

func (ca *CA) load(certPEM []byte) error {
	block, _ := pem.Decode(certPEM)
	if block == nil {
		return fmt.Errorf("%s holds no PEM block: remove the directory to start anew", ca.CertFile)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("parse %s: %w", ca.CertFile, err)
	}
	key, err := keyutil.PrivateKeyFromFile(ca.KeyFile)
	if err != nil {
		return fmt.Errorf("read %s: %w", ca.KeyFile, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return fmt.Errorf("%s holds a %T, which cannot sign", ca.KeyFile, key)
	}
	ca.CertPEM, ca.cert, ca.key = certPEM, cert, signer
	return nil
}

func (ca *CA) create(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of certificate authority %s: %w", name, err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name, OrganizationalUnit: []string{"openshift"}},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certPEM, err := sign(template, template, key.Public(), key, caLifetime)
	if err != nil {
		return fmt.Errorf("make certificate authority %s: %w", name, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("encode the key of certificate authority %s: %w", name, err)
	}
	if err := WriteFile(ca.KeyFile, keyPEM); err != nil {
		return err
	}
	if err := WriteFile(ca.CertFile, certPEM); err != nil {
		return err
	}
	return ca.load(certPEM)
}

// Issue signs a new certificate with a new key and writes both to <file>.crt and <file>.key
// beside the authority.
func (ca *CA) Issue(file string, r Request) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of %s: %w", r.CommonName, err)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: r.CommonName, Organization: r.Organization},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, host := range r.Hosts {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	certPEM, err := sign(template, ca.cert, key.Public(), ca.key, leafLifetime)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %s: %w", r.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode the key of %s: %w", r.CommonName, err)
	}
	base := filepath.Join(filepath.Dir(ca.CertFile), file)
	pair := Pair{CertFile: base + ".crt", KeyFile: base + ".key", CertPEM: certPEM, KeyPEM: keyPEM}
	if err := WriteFile(pair.KeyFile, keyPEM); err != nil {
		return Pair{}, err
	}
	return pair, WriteFile(pair.CertFile, certPEM)
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer,
	lifetime time.Duration) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = now.Add(-backdate), now.Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// WriteFile writes a file atomically that only its owner may read.
func WriteFile(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(data)
	if err := errors.Join(err, temporary.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
