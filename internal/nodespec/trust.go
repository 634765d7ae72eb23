package nodespec

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// trustedCertificates returns the authorities that the cluster's administrators configured for all nodes, sorted
// and without duplicates.
func trustedCertificates(authorities []string) ([]TrustedCertificate, error) {
	var list []TrustedCertificate
	for i, text := range authorities {
		rest := []byte(text)
		for n := 0; ; n++ {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				if n == 0 {
					return nil, fmt.Errorf("trusted certificate authority %d of the cluster is not PEM", i+1)
				}
				break
			}
			if block.Type != "CERTIFICATE" {
				// The text of another block may be a secret.
				return nil, fmt.Errorf("trusted certificate authority %d of the cluster contains a PEM block that is not a certificate", i+1)
			}
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("trusted certificate authority %d of the cluster: %w", i+1, err)
			}
			sum := sha256.Sum256(certificate.Raw)
			list = append(list, TrustedCertificate{
				Fingerprint: hex.EncodeToString(sum[:]), Subject: sanitizeSubject(certificate.Subject.String()), DER: certificate.Raw,
			})
		}
		if strings.Contains(string(rest), "-----BEGIN") {
			return nil, fmt.Errorf("trusted certificate authority %d of the cluster is incomplete", i+1)
		}
	}
	slices.SortFunc(list, func(a, b TrustedCertificate) int { return cmp.Compare(a.Fingerprint, b.Fingerprint) })
	return slices.CompactFunc(list, func(a, b TrustedCertificate) bool { return a.Fingerprint == b.Fingerprint }), nil
}

const maxSubject = 100

// sanitizeSubject limits a certificate's subject, which its creator chose freely, to one short line of a log.
func sanitizeSubject(text string) string {
	runes := []rune(text)
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = '?'
		}
	}
	return string(runes[:min(len(runes), maxSubject)])
}
