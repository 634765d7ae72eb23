package cluster

import (
	"bytes"
	"encoding/asn1"
	"errors"
	"slices"
)

const (
	certificateType = "CERTIFICATE"
	// trustedCertificateType is the certificate format of openssl: the certificate may be followed by settings
	// for its trusted purposes. Source: X509_CERT_AUX in openssl, crypto/x509/x_x509a.c.
	trustedCertificateType = "TRUSTED CERTIFICATE"
)

// countAnnounced returns the number of certificates that begin in a text.
func countAnnounced(content []byte) int {
	return bytes.Count(content, []byte("-----BEGIN "+certificateType+"-----")) +
		bytes.Count(content, []byte("-----BEGIN "+trustedCertificateType+"-----"))
}

// The purposes that concern TLS servers: the purpose itself, and any.
var (
	anyPurpose    = asn1.ObjectIdentifier{2, 5, 29, 37, 0}
	serverPurpose = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 1}
)

// trust is the set of purposes allowed by the settings of a certificate.
type trust int

const (
	trustForAll trust = iota
	// trustForSome includes TLS servers.
	trustForSome
	// trustNotForServers includes no TLS servers.
	trustNotForServers
)

// splitTrusted returns the certificate in a block of type TRUSTED CERTIFICATE, and its trust. With unreadable
// settings, the certificate is not trusted for TLS servers.
func splitTrusted(content []byte) (certificate []byte, allowed trust) {
	var value asn1.RawValue
	rest, err := asn1.Unmarshal(content, &value)
	if err != nil {
		return content, trustForAll // the caller reports the missing certificate
	}
	if len(rest) == 0 {
		return value.FullBytes, trustForAll
	}
	trusted, rejected, err := readPurposes(rest)
	switch {
	case err != nil, hasServerPurpose(rejected), trusted != nil && !hasServerPurpose(trusted):
		return value.FullBytes, trustNotForServers
	case len(rejected) > 0, trusted != nil && !slices.ContainsFunc(trusted, anyPurpose.Equal):
		return value.FullBytes, trustForSome
	}
	return value.FullBytes, trustForAll
}

func hasServerPurpose(purposes []asn1.ObjectIdentifier) bool {
	return slices.ContainsFunc(purposes, anyPurpose.Equal) || slices.ContainsFunc(purposes, serverPurpose.Equal)
}

var errSettings = errors.New("the trust settings are not those of openssl")

// readPurposes parses the settings: a sequence of the trusted purposes, the rejected purposes with the tag 0,
// and fields without effect on trust (a name, a key identifier, and more). Without a list of trusted purposes,
// trusted is nil; an empty list allows no purpose.
func readPurposes(settings []byte) (trusted, rejected []asn1.ObjectIdentifier, err error) {
	var outer asn1.RawValue
	if rest, err := asn1.Unmarshal(settings, &outer); err != nil || len(rest) > 0 ||
		outer.Class != asn1.ClassUniversal || outer.Tag != asn1.TagSequence {
		return nil, nil, errSettings
	}
	for inner := outer.Bytes; len(inner) > 0; {
		var field asn1.RawValue
		if inner, err = asn1.Unmarshal(inner, &field); err != nil {
			return nil, nil, errSettings
		}
		switch {
		case field.Class == asn1.ClassUniversal && field.Tag == asn1.TagSequence:
			trusted, err = decodePurposes(field.Bytes)
		case field.Class == asn1.ClassContextSpecific && field.Tag == 0:
			rejected, err = decodePurposes(field.Bytes)
		}
		if err != nil {
			return nil, nil, errSettings
		}
	}
	return trusted, rejected, nil
}

func decodePurposes(content []byte) ([]asn1.ObjectIdentifier, error) {
	purposes := []asn1.ObjectIdentifier{}
	for len(content) > 0 {
		var purpose asn1.ObjectIdentifier
		rest, err := asn1.Unmarshal(content, &purpose)
		if err != nil {
			return nil, err
		}
		content = rest
		purposes = append(purposes, purpose)
	}
	return purposes, nil
}
