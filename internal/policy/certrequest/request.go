package certrequest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// MaxRequestSize is the maximum size of a certificate request in bytes. A kubelet's request with the largest key and
// twenty names needs less than half of this.
const MaxRequestSize = 16 << 10

// pemRequest is the PEM type of a request. Source: RFC 7468, section 7.
const pemRequest = "CERTIFICATE REQUEST"

// nodeRequest is a certificate request, as parsed by crypto/x509 and in its original form.
type nodeRequest struct {
	*x509.CertificateRequest
	signed signedPart
}

// fullRequest is a request with the signature. Source: RFC 2986, section 4.2.
type fullRequest struct {
	Signed    asn1.RawValue
	Algorithm pkix.AlgorithmIdentifier
	Signature asn1.BitString
}

// signedPart is the signed part of a request, limited to the fields of a node's request. Source: RFC 2986, section
// 4.1, where relative names and attributes are sets: encoding/asn1 requires the suffix SET in the name of the type.
type signedPart struct {
	Version    int
	Subject    []relativeNameSET
	PublicKey  asn1.RawValue
	Attributes []requestedExtensions `asn1:"tag:0"`
}

type relativeNameSET []attributeValue

type attributeValue struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

type requestedExtensions struct {
	ID         asn1.ObjectIdentifier
	Extensions [][]pkix.Extension `asn1:"set"`
}

// parseRequest parses a certificate request. The result is nil if a check has failed.
//
// The key is checked before any signature is verified: keys of unusual sizes are not used in any computation.
func parseRequest(data []byte) (request *nodeRequest, failed policy.Decision) {
	form := func(format string, values ...any) (*nodeRequest, policy.Decision) {
		return nil, policy.Decision{Check: "RequestMalformed", Reason: reasonRefused, Message: fmt.Sprintf(format, values...)}
	}
	if len(data) > MaxRequestSize {
		return form("The certificate request has more than %d bytes.", MaxRequestSize)
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != pemRequest || !bytes.Equal(data, pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: block.Bytes})) {
		return form("The request must contain exactly one certificate request in PEM form.")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return form("The certificate request cannot be parsed: %.200v.", err)
	}
	if problem := weakKey(parsed); problem != "" {
		return nil, policy.Decision{Check: "KeyWeak", Reason: reasonRefused, Message: problem}
	}
	if !slices.Contains(signatures, parsed.SignatureAlgorithm) {
		return nil, policy.Decision{Check: "SignatureAlgorithmUnsupported", Reason: reasonRefused,
			Message: fmt.Sprintf("The request is signed with %s, which is not allowed.", parsed.SignatureAlgorithm)}
	}
	if err := parsed.CheckSignature(); err != nil {
		return form("The certificate request is not signed with its own key: %.200v.", err)
	}
	request = &nodeRequest{CertificateRequest: parsed}
	if problem := request.unexpectedContent(); problem != "" {
		return form("%s", problem)
	}
	return request, policy.Decision{Allowed: true}
}

// unexpectedContent parses the request a second time and requires exactly the parsed content. crypto/x509 ignores
// unknown attributes, attribute values and trailing parts of sequences, and picks one of duplicate elements.
func (r *nodeRequest) unexpectedContent() string {
	const more = "The certificate request contains an element that is not allowed in a request of a node"
	if !unmarshalAll(r.Raw, &fullRequest{}) || !unmarshalAll(r.RawTBSCertificateRequest, &r.signed) || r.signed.Version != 0 {
		return more + ", or is not in the canonical encoding."
	}
	switch attributes := r.signed.Attributes; {
	case len(attributes) == 0:
		return ""
	case len(attributes) > 1 || !attributes[0].ID.Equal(oidExtensionRequest) || len(attributes[0].Extensions) != 1:
		return more + ": an attribute other than one list of extensions."
	}
	return ""
}

// unmarshalAll parses DER into a value, and reports whether the value is the complete content of the DER.
func unmarshalAll[T any](der []byte, into *T) bool {
	rest, err := asn1.Unmarshal(der, into)
	if err != nil || len(rest) > 0 {
		return false
	}
	again, err := asn1.Marshal(*into)
	return err == nil && bytes.Equal(der, again)
}

// The checks that every certificate request of a node must pass, for any purpose.

// nodesOrganization is the group of all nodes. Source: Kubernetes, "Using Node Authorization".
const nodesOrganization = "system:nodes"

// NodeUser returns the user name of a node.
func NodeUser(nodeName string) string { return "system:node:" + nodeName }

// reasonRefused is the reason of every decision against a request.
const reasonRefused = v1alpha1.ReasonCertificateRequestRefused

// Object identifiers allowed in a request. Source: RFC 5280, appendix A, and section 4.2.1.6; RFC 2985, section
// 5.4.2.
var (
	oidCommonName             = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization           = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidSubjectAlternativeName = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidExtensionRequest       = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}
)

// Values of a request are truncated in messages, because the requester controls them.

// someQuoted formats the first values for a message, each truncated.
func someQuoted[T ~string](values []T) string {
	const most = 4
	var quoted []string
	for _, value := range values[:min(len(values), most)] {
		quoted = append(quoted, fmt.Sprintf("%.100q", string(value)))
	}
	if len(values) > most {
		quoted = append(quoted, fmt.Sprintf("and %d more", len(values)-most))
	}
	return "[" + strings.Join(quoted, " ") + "]"
}

func wrongCommonName(r *nodeRequest, user string) string {
	if r.Subject.CommonName == user {
		return ""
	}
	return fmt.Sprintf("The request has the common name %.100q; it must be %q.", r.Subject.CommonName, user)
}

func wrongOrganization(r *nodeRequest, group string) string {
	if slices.Equal(r.Subject.Organization, []string{group}) {
		return ""
	}
	return fmt.Sprintf("The request has the organizations %s; %q must be the only one.",
		someQuoted(r.Subject.Organization), group)
}

// unexpectedSubject allows one common name and one organization in the subject, each by itself and in an unambiguous
// encoding. The check uses the original form of the subject: the signer may copy the subject, and readers of the
// certificate may parse it differently from Go.
func unexpectedSubject(r *nodeRequest) string {
	for _, name := range r.Subject.Names {
		if !name.Type.Equal(oidCommonName) && !name.Type.Equal(oidOrganization) {
			return fmt.Sprintf("The request's subject contains attribute %s; only common name and organization are allowed.", name.Type)
		}
	}
	if len(r.Subject.Names) != 2 || len(r.signed.Subject) != 2 || len(r.signed.Subject[0]) != 1 || len(r.signed.Subject[1]) != 1 {
		return "The request's subject must contain exactly one common name and one organization, each in a separate element."
	}
	for _, relative := range r.signed.Subject {
		value := relative[0].Value
		if value.Class != asn1.ClassUniversal || value.IsCompound || value.Tag != asn1.TagPrintableString && value.Tag != asn1.TagUTF8String {
			return fmt.Sprintf("The request's subject contains a string of ASN.1 type %d; PrintableString and UTF8String are allowed.",
				value.Tag)
		}
	}
	return ""
}

// Bounds of RSA keys. The maximum comes from crypto/tls, which refuses a handshake with a larger key.
const (
	minRSABits     = 2048
	maxRSABits     = 8192
	minRSAExponent = 65537
)

func weakKey(r *x509.CertificateRequest) string {
	switch key := r.PublicKey.(type) {
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return ""
		}
		return fmt.Sprintf("The key has %d bits; an ECDSA key must use curve P-256, P-384 or P-521.",
			key.Curve.Params().BitSize)
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return fmt.Sprintf("The key has %d bits; an RSA key must have %d to %d.", bits, minRSABits, maxRSABits)
		}
		if key.E < minRSAExponent || key.E%2 == 0 {
			return fmt.Sprintf("The key has the exponent %d; the exponent of an RSA key must be odd and at least %d.",
				key.E, minRSAExponent)
		}
		return ""
	case ed25519.PublicKey:
		return ""
	}
	return fmt.Sprintf("The key is of type %s; ECDSA, RSA and Ed25519 are allowed.", r.PublicKeyAlgorithm)
}

// signatures are the allowed algorithms of a request's signature. Go would also accept SHA-1.
var signatures = []x509.SignatureAlgorithm{
	x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512, x509.SHA256WithRSA, x509.SHA384WithRSA,
	x509.SHA512WithRSA, x509.PureEd25519,
}

// unexpectedNames rejects alternative names of any kind: the subject alone identifies a client.
func unexpectedNames(r *nodeRequest) string {
	for _, extension := range r.Extensions {
		if extension.Id.Equal(oidSubjectAlternativeName) {
			return "The request for a client certificate contains alternative names, which are not allowed."
		}
	}
	return ""
}

func unexpectedExtensions(r *nodeRequest) string {
	for _, extension := range r.Extensions {
		if !extension.Id.Equal(oidSubjectAlternativeName) {
			return fmt.Sprintf("The request contains the extension %s, which is not allowed.", extension.Id)
		}
	}
	return ""
}
