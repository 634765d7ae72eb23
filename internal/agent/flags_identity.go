package agent

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/identity"
)

// identityWord matches a valid identity name on a command line: a word that no shell changes.
var identityWord = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// setIdentityCertificate parses an identity name, a colon and the certificate.
func (in *input) setIdentityCertificate(word string) error {
	name, certificate, ok := strings.Cut(word, ":")
	if !ok || !identityWord.MatchString(name) {
		return fmt.Errorf("%.40q is not of the form NAME:BASE64URL", word)
	}
	der, err := base64.RawURLEncoding.DecodeString(certificate)
	if err != nil {
		return fmt.Errorf("not base64url: %w", err)
	}
	chain, err := x509.ParseCertificates(der)
	if err != nil {
		return fmt.Errorf("not a certificate: %w", err)
	}
	text := ""
	for _, certificate := range chain {
		text += string(pem.EncodeToMemory(&pem.Block{Type: identity.BlockCertificate, Bytes: certificate.Raw}))
	}
	if in.certificates == nil {
		in.certificates = map[string]string{}
	}
	in.certificates[name] = text
	return nil
}

func (in *input) addRenewal(word string) error {
	if !identityWord.MatchString(word) {
		return fmt.Errorf("%.40q is not an identity name", word)
	}
	in.renewals = append(in.renewals, word)
	return nil
}

var platformWord = regexp.MustCompile(`^[A-Za-z]{1,32}$`)

func (in *input) setPlatform(word string) error {
	if !platformWord.MatchString(word) {
		return fmt.Errorf("%.40q is not a platform name", word)
	}
	in.platform = word
	return nil
}
