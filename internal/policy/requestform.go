package policy

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"
)

// RequestLimit is how many bytes of a certificate request are looked at. That of a kubelet with the largest key and twenty names has less
// than half of it.
const RequestLimit = 16 << 10

// pemRequest is the kind of PEM that a request is in. Source: RFC 7468, section 7.
const pemRequest = "CERTIFICATE REQUEST"

// nodeRequest is a certificate request, as crypto/x509 understands it and as it stands there.
type nodeRequest struct {
	*x509.CertificateRequest
	signed signedPart
}

// wholeRequest is a request with the signature. Source: RFC 2986, section 4.2.
type wholeRequest struct {
	Signed    asn1.RawValue
	Algorithm pkix.AlgorithmIdentifier
	Signature asn1.BitString
}

// signedPart is the part of a request that is signed, without what a node's request does not have. Source: RFC 2986, section 4.1, where
// relative names and attributes are sets: a name ends in SET for encoding/asn1.
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

// parseRequest reads a certificate request. There is none when a check has failed.
//
// A key is looked at before it verifies anything: that of a size which nobody uses is not worked with.
func parseRequest(data []byte) (request *nodeRequest, failed Decision) {
	form := func(format string, values ...any) (*nodeRequest, Decision) {
		return nil, Decision{Check: "Form", Reason: refused, Message: fmt.Sprintf(format, values...)}
	}
	if len(data) > RequestLimit {
		return form("The certificate request has more than %d bytes.", RequestLimit)
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != pemRequest || !bytes.Equal(data, pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: block.Bytes})) {
		return form("There is no certificate request in PEM form, or something besides.")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return form("The certificate request cannot be read: %.200v.", err)
	}
	if problem := keyStrength(parsed); problem != "" {
		return nil, Decision{Check: "Key", Reason: refused, Message: problem}
	}
	if !slices.Contains(signatures, parsed.SignatureAlgorithm) {
		return nil, Decision{Check: "Signature", Reason: refused,
			Message: fmt.Sprintf("The request is signed with %s, which is not allowed.", parsed.SignatureAlgorithm)}
	}
	if err := parsed.CheckSignature(); err != nil {
		return form("The certificate request is not signed with its own key: %.200v.", err)
	}
	request = &nodeRequest{CertificateRequest: parsed}
	if problem := request.readAgain(); problem != "" {
		return form("%s", problem)
	}
	return request, Decision{Allowed: true}
}

// readAgain reads the request once more, and wants it to be made of what was read and nothing else: crypto/x509 passes over attributes,
// values of attributes and ends of sequences that it does not know, and of two things that may be there once takes one.
func (r *nodeRequest) readAgain() string {
	const more = "The certificate request holds something that no request of a node does"
	if !exactly(r.Raw, &wholeRequest{}) || !exactly(r.RawTBSCertificateRequest, &r.signed) || r.signed.Version != 0 {
		return more + ", or is in another form."
	}
	switch attributes := r.signed.Attributes; {
	case len(attributes) == 0:
		return ""
	case len(attributes) > 1 || !attributes[0].ID.Equal(oidExtensionRequest) || len(attributes[0].Extensions) != 1:
		return more + ": attributes besides one list of extensions."
	}
	return ""
}

// exactly reads DER into a value, and reports whether the value is all that the DER holds.
func exactly[T any](der []byte, into *T) bool {
	rest, err := asn1.Unmarshal(der, into)
	if err != nil || len(rest) > 0 {
		return false
	}
	again, err := asn1.Marshal(*into)
	return err == nil && bytes.Equal(der, again)
}
