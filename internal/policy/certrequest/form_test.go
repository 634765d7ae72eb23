package certrequest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
)

// manualRequest is a request assembled piece by piece, in forms that crypto/x509 does not create.
type manualRequest struct {
	version int
	subject []relativeNameSET
	// rawSubject replaces subject.
	rawSubject []byte
	attributes []asn1.RawValue
	// public is the key in the request, if it differs from the signing key.
	public any
	sha1   bool
	// tail is appended to the signed part; end is appended to the signature.
	tail, end []byte
	// wrap encodes the request as PEM.
	wrap func([]byte) []byte
}

var (
	oidECDSAWithSHA256   = asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}
	oidECDSAWithSHA1     = asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 1}
	oidChallengePassword = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}
)

func asn1Text(tag int, value string) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassUniversal, Tag: tag, Bytes: []byte(value)}
}

func organizationValue(value asn1.RawValue) attributeValue {
	return attributeValue{oidOrganization, value}
}

func commonNameValue(value asn1.RawValue) attributeValue { return attributeValue{oidCommonName, value} }

var (
	plainOrganization = organizationValue(asn1Text(asn1.TagPrintableString, "system:nodes"))
	plainCommonName   = commonNameValue(asn1Text(asn1.TagPrintableString, "system:node:win-a"))
)

// marshalDER marshals a value and fails the test on an error.
func marshalDER(t testing.TB, value any) []byte {
	t.Helper()
	data, err := asn1.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func marshalRaw(t testing.TB, value any) asn1.RawValue {
	t.Helper()
	return asn1.RawValue{FullBytes: marshalDER(t, value)}
}

// newDERSequence returns a DER sequence of the pieces.
func newDERSequence(t testing.TB, pieces ...[]byte) []byte {
	t.Helper()
	value := asn1.RawValue{Class: asn1.ClassUniversal, Tag: asn1.TagSequence, IsCompound: true}
	for _, piece := range pieces {
		value.Bytes = append(value.Bytes, piece...)
	}
	return marshalDER(t, value)
}

// newDERSet returns a DER set of one piece.
func newDERSet(t testing.TB, piece []byte) []byte {
	t.Helper()
	return marshalDER(t, asn1.RawValue{Class: asn1.ClassUniversal, Tag: asn1.TagSet, IsCompound: true, Bytes: piece})
}

// extensionRequest returns an attribute with lists of extensions.
func extensionRequest(t testing.TB, lists ...[]pkix.Extension) asn1.RawValue {
	t.Helper()
	return marshalRaw(t, requestedExtensions{oidExtensionRequest, lists})
}

// alternativeNames returns the extension with the unmodified names.
func alternativeNames(t testing.TB, names ...asn1.RawValue) pkix.Extension {
	t.Helper()
	return pkix.Extension{Id: oidSubjectAlternativeName, Value: marshalDER(t, names)}
}

func servedName(name string) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tagDNSName, Bytes: []byte(name)}
}

func servedAddress(address ...byte) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tagIPAddress, Bytes: address}
}

// signRequest signs the request with a P-256 key.
func (b manualRequest) signRequest(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	public := b.public
	if public == nil {
		public = key.Public()
	}
	info, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	subject := b.subject
	if subject == nil {
		subject = []relativeNameSET{{plainOrganization}, {plainCommonName}}
	}
	subjectDER := b.rawSubject
	if subjectDER == nil {
		subjectDER = marshalDER(t, subject)
	}
	attributes := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true}
	for _, attribute := range b.attributes {
		attributes.Bytes = append(attributes.Bytes, attribute.FullBytes...)
	}
	signed := newDERSequence(t, marshalDER(t, b.version), subjectDER, info, marshalDER(t, attributes), b.tail)
	sum, algorithm := sha256.Sum256(signed), oidECDSAWithSHA256
	digest := sum[:]
	if b.sha1 {
		old := sha1.Sum(signed) // see above
		digest, algorithm = old[:], oidECDSAWithSHA1
	}
	signature, err := ecdsa.SignASN1(rand.Reader, key, digest)
	if err != nil {
		t.Fatal(err)
	}
	der := newDERSequence(t, signed, marshalDER(t, pkix.AlgorithmIdentifier{Algorithm: algorithm}),
		marshalDER(t, asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}), b.end)
	if b.wrap != nil {
		return b.wrap(der)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: der})
}

//
func TestKubeletClientRequest_NonCanonicalFormRejected(t *testing.T) {
	key := ecdsaKey(t, elliptic.P256())
	for name, request := range map[string]manualRequest{
		"as Go makes it":                 {},
		"with the name before the group": {subject: []relativeNameSET{{plainCommonName}, {plainOrganization}}},
		"with its texts in UTF-8": {subject: []relativeNameSET{{organizationValue(asn1Text(asn1.TagUTF8String,
			"system:nodes"))}, {commonNameValue(asn1Text(asn1.TagUTF8String, "system:node:win-a"))}}},
		"with an empty list of extensions too": {attributes: []asn1.RawValue{extensionRequest(t, []pkix.Extension{})}},
	} {
		t.Run("a request "+name+" is signed", func(t *testing.T) {
			if decision := kubeletClientRequest(request.signRequest(t, key), "win-a"); !decision.Allowed {
				t.Errorf("%+v", decision)
			}
		})
	}
	for name, invalid := range invalidForms(t) {
		t.Run("a request with "+name+" is not", func(t *testing.T) {
			decision := kubeletClientRequest(invalid.request.signRequest(t, key), "win-a")
			if decision.Allowed || decision.Check != invalid.check || decision.Message == "" {
				t.Errorf("decision is %+v, want check %s", decision, invalid.check)
			}
		})
	}
}

type invalidForm struct {
	request manualRequest
	check   string
}

// invalidForms are requests that different parsers would interpret differently.
func invalidForms(t testing.TB) map[string]invalidForm {
	t.Helper()
	wide := func(ascii string) string {
		var utf16 strings.Builder
		for _, letter := range ascii {
			utf16.WriteString("\x00" + string(letter))
		}
		return utf16.String()
	}
	other := commonNameValue(asn1Text(asn1.TagPrintableString, "system:node:master-0"))
	masters := organizationValue(asn1Text(asn1.TagPrintableString, "system:masters"))
	password := marshalRaw(t, struct {
		ID     asn1.ObjectIdentifier
		Values []string `asn1:"set"`
	}{oidChallengePassword, []string{"secret"}})
	longer := newDERSequence(t, newDERSet(t, marshalDER(t, plainOrganization)), newDERSet(t, newDERSequence(t, marshalDER(t, oidCommonName), marshalDER(t, "system:node:win-a"), marshalDER(t, "system:node:master-0"))))
	authority := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}
	modulus := rsaKey(t, 2048).N

	return map[string]invalidForm{
		"a second name at the same place":          {manualRequest{subject: []relativeNameSET{{plainOrganization}, {commonNameValue(asn1Text(asn1.TagPrintableString, "system:admin")), plainCommonName}}}, "SubjectInvalid"},
		"a longer name at the same place":          {manualRequest{subject: []relativeNameSET{{plainOrganization}, {plainCommonName, other}}}, "CommonNameMismatch"},
		"a second group at the same place":         {manualRequest{subject: []relativeNameSET{{masters, plainOrganization}, {plainCommonName}}}, "OrganizationMismatch"},
		"name and group at one place":              {manualRequest{subject: []relativeNameSET{{plainCommonName, plainOrganization}}}, "SubjectInvalid"},
		"an empty place":                           {manualRequest{subject: []relativeNameSET{{plainOrganization}, {}, {plainCommonName}}}, "SubjectInvalid"},
		"a second name before it":                  {manualRequest{subject: []relativeNameSET{{plainOrganization}, {other}, {plainCommonName}}}, "SubjectInvalid"},
		"the same name twice":                      {manualRequest{subject: []relativeNameSET{{plainOrganization}, {plainCommonName}, {plainCommonName}}}, "SubjectInvalid"},
		"a second group":                           {manualRequest{subject: []relativeNameSET{{plainOrganization}, {masters}, {plainCommonName}}}, "OrganizationMismatch"},
		"a name in two bytes a letter":             {manualRequest{subject: []relativeNameSET{{plainOrganization}, {commonNameValue(asn1Text(asn1.TagBMPString, wide("system:node:win-a")))}}}, "SubjectInvalid"},
		"a name in a text of an old kind":          {manualRequest{subject: []relativeNameSET{{plainOrganization}, {commonNameValue(asn1Text(asn1.TagT61String, "system:node:win-a"))}}}, "SubjectInvalid"},
		"a name in a text for addresses":           {manualRequest{subject: []relativeNameSET{{plainOrganization}, {commonNameValue(asn1Text(asn1.TagIA5String, "system:node:win-a"))}}}, "SubjectInvalid"},
		"a group in a text of an old kind":         {manualRequest{subject: []relativeNameSET{{organizationValue(asn1Text(asn1.TagT61String, "system:nodes"))}, {plainCommonName}}}, "SubjectInvalid"},
		"a name that ends with a null":             {manualRequest{subject: []relativeNameSET{{plainOrganization}, {commonNameValue(asn1Text(asn1.TagUTF8String, "system:node:win-a\x00"))}}}, "CommonNameMismatch"},
		"a name with a letter of no width":         {manualRequest{subject: []relativeNameSET{{plainOrganization}, {commonNameValue(asn1Text(asn1.TagUTF8String, "system:node:win\u200b-a"))}}}, "CommonNameMismatch"},
		"a name with wide letters":                 {manualRequest{subject: []relativeNameSET{{plainOrganization}, {commonNameValue(asn1Text(asn1.TagUTF8String, "system:node:ｗin-a"))}}}, "CommonNameMismatch"},
		"a name with a space before it":            {manualRequest{subject: []relativeNameSET{{plainOrganization}, {commonNameValue(asn1Text(asn1.TagPrintableString, " system:node:win-a"))}}}, "CommonNameMismatch"},
		"a number for a name":                      {manualRequest{subject: []relativeNameSET{{plainOrganization}, {commonNameValue(asn1.RawValue{Tag: asn1.TagInteger, Bytes: []byte{1}})}}}, "CommonNameMismatch"},
		"something behind the signed part":         {manualRequest{tail: marshalDER(t, "more")}, "RequestMalformed"},
		"something behind the signature":           {manualRequest{end: marshalDER(t, "more")}, "RequestMalformed"},
		"another version":                          {manualRequest{version: 1}, "RequestMalformed"},
		"a password":                               {manualRequest{attributes: []asn1.RawValue{password}}, "RequestMalformed"},
		"a password besides extensions":            {manualRequest{attributes: []asn1.RawValue{extensionRequest(t, []pkix.Extension{}), password}}, "RequestMalformed"},
		"two lists of extensions":                  {manualRequest{attributes: []asn1.RawValue{extensionRequest(t, []pkix.Extension{}), extensionRequest(t, []pkix.Extension{authority})}}, "RequestMalformed"},
		"two lists of extensions in one attribute": {manualRequest{attributes: []asn1.RawValue{extensionRequest(t, []pkix.Extension{}, []pkix.Extension{authority})}}, "RequestMalformed"},
		"no list of extensions in their attribute": {manualRequest{attributes: []asn1.RawValue{extensionRequest(t)}}, "RequestMalformed"},
		"an extension twice":                       {manualRequest{attributes: []asn1.RawValue{extensionRequest(t, []pkix.Extension{authority, authority})}}, "RequestMalformed"},
		"an extension that nobody needs":           {manualRequest{attributes: []asn1.RawValue{extensionRequest(t, []pkix.Extension{authority})}}, "ExtensionsUnexpected"},
		"an invalid attribute":                     {manualRequest{attributes: []asn1.RawValue{marshalRaw(t, 1)}}, "RequestMalformed"},
		"two values of one name":                   {manualRequest{rawSubject: longer}, "RequestMalformed"},
		"a signature by SHA-1":                     {manualRequest{sha1: true}, "SignatureAlgorithmUnsupported"},
		"a key that is not what has signed it":     {manualRequest{public: ecdsaKey(t, elliptic.P256()).Public()}, "RequestMalformed"},
		"a huge RSA key":                           {manualRequest{public: &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 16383, 1), E: 65537}}, "KeyWeak"},
		"an RSA key with a small exponent":         {manualRequest{public: &rsa.PublicKey{N: modulus, E: 3}}, "KeyWeak"},
		"an RSA key with an even exponent":         {manualRequest{public: &rsa.PublicKey{N: modulus, E: 65538}}, "KeyWeak"},
		"a key on another curve":                   {manualRequest{public: ecdsaKey(t, elliptic.P224()).Public()}, "KeyWeak"},
		"a text before it": {manualRequest{wrap: func(d []byte) []byte {
			return append([]byte("hello\n"), pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: d})...)
		}}, "RequestMalformed"},
		"headers": {manualRequest{wrap: func(d []byte) []byte {
			return pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: d, Headers: map[string]string{"a": "b"}})
		}}, "RequestMalformed"},
		"an empty request before it": {manualRequest{wrap: func(d []byte) []byte {
			return append([]byte("-----BEGIN CERTIFICATE REQUEST-----\n!\n"), pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: d})...)
		}}, "RequestMalformed"},
		"a byte behind it within PEM": {manualRequest{wrap: func(d []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: append(d, 0)}) }}, "RequestMalformed"},
		"a megabyte behind it": {manualRequest{wrap: func(d []byte) []byte {
			return append(pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: d}), make([]byte, 1<<20)...)
		}}, "RequestMalformed"},
		"a group that is listed a thousand times":    {manualRequest{subject: append(manyGroups(1000), relativeNameSET{plainCommonName})}, "RequestMalformed"},
		"a group that is listed a few hundred times": {manualRequest{subject: append(manyGroups(200), relativeNameSET{plainCommonName})}, "OrganizationMismatch"},
	}
}

func manyGroups(n int) []relativeNameSET {
	groups := make([]relativeNameSET, n)
	for i := range groups {
		groups[i] = relativeNameSET{plainOrganization}
	}
	return groups
}

func TestKubeletClientRequest_RejectionMessageBounded(t *testing.T) {
	key := ecdsaKey(t, elliptic.P256())
	for name, invalid := range invalidForms(t) {
		if message := kubeletClientRequest(invalid.request.signRequest(t, key), "win-a").Message; len(message) > 900 {
			t.Errorf("of a request with %s it says %d bytes", name, len(message))
		}
	}
}
