package certrequest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// newRequest creates a signed request. A nil key means a new P-256 key.
func newRequest(t testing.TB, key crypto.Signer, change func(*x509.CertificateRequest)) []byte {
	t.Helper()
	if key == nil {
		key = ecdsaKey(t, elliptic.P256())
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:win-a",
		Organization: []string{"system:nodes"}}}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func ecdsaKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rsaKey(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// otherName returns a subject alternative name of a kind that crypto/x509 ignores.
func otherName(t testing.TB) pkix.Extension {
	t.Helper()
	registered := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 8, Bytes: []byte{0x2a, 0x03}}
	dns := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tagDNSName, Bytes: []byte("win-a")}
	value, err := asn1.Marshal([]asn1.RawValue{dns, registered})
	if err != nil {
		t.Fatal(err)
	}
	return pkix.Extension{Id: oidSubjectAlternativeName, Value: value}
}

// invalidSubjects are faults of client and serving certificates alike, with the check that detects them.
var invalidSubjects = map[string]struct {
	change func(*x509.CertificateRequest)
	check  string
}{
	"the name of no node that there is": {func(r *x509.CertificateRequest) {
		r.Subject.CommonName = "system:node:master-9"
	}, "CommonNameMismatch"},
	"a name that begins with the node's": {func(r *x509.CertificateRequest) {
		r.Subject.CommonName += "b"
	}, "CommonNameMismatch"},
	"the node's name in capitals": {func(r *x509.CertificateRequest) {
		r.Subject.CommonName = "system:node:WIN-A"
	}, "CommonNameMismatch"},
	"the node's name with a trailing dot": {func(r *x509.CertificateRequest) {
		r.Subject.CommonName += "."
	}, "CommonNameMismatch"},
	"a letter that looks like the node's": {func(r *x509.CertificateRequest) {
		r.Subject.CommonName = "system:node:wіn-a"
	}, "CommonNameMismatch"},
	"no name": {func(r *x509.CertificateRequest) { r.Subject.CommonName = "" }, "CommonNameMismatch"},
	"the group of administrators": {func(r *x509.CertificateRequest) {
		r.Subject.Organization = []string{"system:masters"}
	}, "OrganizationMismatch"},
	"a second group": {func(r *x509.CertificateRequest) {
		r.Subject.Organization = []string{"system:nodes", "system:masters"}
	}, "OrganizationMismatch"},
	"no group": {func(r *x509.CertificateRequest) {
		r.Subject.Organization = nil
	}, "OrganizationMismatch"},
	"an organizational unit": {func(r *x509.CertificateRequest) {
		r.Subject.OrganizationalUnit = []string{"x"}
	}, "SubjectInvalid"},
	"a second common name": {func(r *x509.CertificateRequest) {
		r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: oidCommonName, Value: "system:node:master-0"},
			{Type: oidCommonName, Value: "system:node:win-a"}}
	}, "SubjectInvalid"},
	"an extension that makes a certificate authority": {func(r *x509.CertificateRequest) {
		r.ExtraExtensions = append(r.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 19},
			Value: []byte{0x30, 3, 1, 1, 0xff}})
	}, "ExtensionsUnexpected"},
}

// kubeletClientRequest calls JudgeClient for the kubelet of a node.
func kubeletClientRequest(requestPEM []byte, nodeName string) policy.Decision {
	return JudgeClient(requestPEM, kubeletIdentity(nodeName))
}

//
func TestKubeletClientRequest(t *testing.T) {
	t.Run("a kubelet's request for its node is signed, whatever the kind of key", func(t *testing.T) {
		_, edwards, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		for name, key := range map[string]crypto.Signer{
			"P-256": ecdsaKey(t, elliptic.P256()), "P-384": ecdsaKey(t, elliptic.P384()),
			"RSA 2048": rsaKey(t, 2048), "Ed25519": edwards,
		} {
			if decision := kubeletClientRequest(newRequest(t, key, nil), "win-a"); !decision.Allowed {
				t.Errorf("%s: %+v", name, decision)
			}
		}
	})
	refuses := func(name string, request []byte, check string) {
		t.Run("refuses "+name, func(t *testing.T) {
			decision := kubeletClientRequest(request, "win-a")
			if decision.Allowed || decision.Check != check || decision.Reason == "" || decision.Message == "" {
				t.Errorf("decision is %+v, want check %s", decision, check)
			}
		})
	}
	for name, invalid := range invalidSubjects {
		refuses(name, newRequest(t, nil, invalid.change), invalid.check)
	}
	refuses("an ECDSA key that is too short", newRequest(t, ecdsaKey(t, elliptic.P224()), nil), "KeyWeak")
	t.Setenv("GODEBUG", "rsa1024min=0")
	refuses("an RSA key that is too short", newRequest(t, rsaKey(t, 1024), nil), "KeyWeak")
	refuses("a DNS name", newRequest(t, nil, func(r *x509.CertificateRequest) {
		r.DNSNames = []string{"win-a"}
	}), "NamesUnexpected")
	refuses("an address", newRequest(t, nil, func(r *x509.CertificateRequest) {
		r.IPAddresses = []net.IP{{10, 0, 0, 1}}
	}), "NamesUnexpected")
	refuses("an alternative name of an unknown kind", newRequest(t, nil, func(r *x509.CertificateRequest) {
		r.ExtraExtensions = []pkix.Extension{otherName(t)}
	}), "NamesUnexpected")

	good := newRequest(t, nil, nil)
	refuses("nothing", nil, "RequestMalformed")
	refuses("what is not PEM", []byte("garbage"), "RequestMalformed")
	refuses("PEM of another kind", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), "RequestMalformed")
	refuses("PEM that holds no request", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")}),
		"RequestMalformed")
	refuses("two requests", append(append([]byte(nil), good...), good...), "RequestMalformed")
	block, _ := pem.Decode(good)
	block.Bytes[len(block.Bytes)-1] ^= 1
	refuses("a request that is not signed with its key", pem.EncodeToMemory(block), "RequestMalformed")

	t.Run("what the host wrote is cut in messages", func(t *testing.T) {
		long := newRequest(t, nil, func(r *x509.CertificateRequest) { r.Subject.CommonName = strings.Repeat("x", 5000) })
		if message := kubeletClientRequest(long, "win-a").Message; len(message) > 400 {
			t.Errorf("the message has %d bytes", len(message))
		}
	})
}

// newNames returns the names and addresses of the texts.
func newNames(texts ...string) Names {
	var set Names
	for _, text := range texts {
		set.Add(text)
	}
	return set
}

var knownNodes = Facts{
	Nodes: []Node{
		{Name: "win-b", Registered: true, Assigned: newNames("win-b", "shared.example.com", "10.0.0.2"),
			Reported: newNames("10.0.0.1", "10.0.0.9")},
		{Name: "win-a", Registered: true, Assigned: newNames("win-a", "WIN-A", "win-a.example.com", "Listed.example.com",
			"shared.example.com", "", "10.0.0.1", "10.0.0.2"),
			Reported: newNames("10.0.0.8", "10.0.0.9", "172.30.0.9")},
		{Name: "master-0", Foreign: true, Registered: true, Assigned: newNames("master-0", "10.0.0.3")},
	},
	Cluster: &nodespec.Cluster{ServiceCIDRs: []string{"172.30.0.0/16"},
		APIServerInternalURL: "https://api-int.lab.example.com:6443"},
}

func signingRequest(signer string, purpose certificatesv1.KeyUsage,
	request []byte) certificatesv1.CertificateSigningRequest {
	return certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: signer, Request: request, Username: "system:node:win-a", Groups: []string{"system:nodes",
			"system:authenticated"},
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, purpose},
	}}
}

func withNames(r *x509.CertificateRequest) {
	r.DNSNames, r.IPAddresses = []string{"win-a"}, []net.IP{net.IPv4(10, 0, 0, 1)}
}

// expectOutcome reports a decision that differs from the expected one.
func expectOutcome(t *testing.T, got Decision, outcome Outcome, check string) {
	t.Helper()
	if got.Outcome != outcome || got.Check != check {
		t.Errorf("decision is %+v, want %s by check %q", got, outcome, check)
	}
	switch {
	case outcome == Ignore && got != (Decision{Outcome: Ignore}):
		t.Errorf("what is not ours gets more than that: %+v", got)
	case outcome != Ignore && (got.NodeName != "win-a" || got.Message == ""):
		t.Errorf("the decision does not name the fault and the node: %+v", got)
	case outcome == Refuse && got.Reason == "":
		t.Error("the refusal has no reason")
	}
}

type csr = certificatesv1.CertificateSigningRequest

// invalidRequests are invalid for every purpose, with the expected outcomes.
var invalidRequests = map[string]struct {
	change  func(*csr)
	outcome Outcome
	check   string
}{
	"of a Linux node is left alone": {func(c *csr) {
		c.Spec.Username = "system:node:worker-0"
	}, Ignore, ""},
	"of a user who is no node is left alone": {func(c *csr) { c.Spec.Username = "win-a" }, Ignore, ""},
	"of the bootstrapper is left alone": {func(c *csr) {
		c.Spec.Username = "system:bootstrap:abc"
	}, Ignore, ""},
	"of a node without a name is left alone": {func(c *csr) { c.Spec.Username = "system:node:" }, Ignore, ""},
	"of a node in capitals is left alone": {func(c *csr) {
		c.Spec.Username = "system:node:WIN-A"
	}, Ignore, ""},
	"to another signer is left alone": {func(c *csr) {
		c.Spec.SignerName = "example.com/signer"
	}, Ignore, ""},
	"to no signer is left alone": {func(c *csr) { c.Spec.SignerName = "" }, Ignore, ""},
	"to the signer of all clients is left alone": {func(c *csr) {
		c.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
	}, Ignore, ""},
	"of somebody outside the group is refused": {func(c *csr) {
		c.Spec.Groups = []string{"system:authenticated"}
	}, Refuse, "GroupMissing"},
	"of a node that is not authenticated is refused": {func(c *csr) {
		c.Spec.Groups = []string{"system:nodes"}
	}, Refuse, "GroupMissing"},
	"for a life of ten years is refused": {func(c *csr) {
		c.Spec.ExpirationSeconds = new(int32(10 * 365 * 24 * 3600))
	}, Refuse, "LifetimeInvalid"},
	"for a life of a minute is refused": {func(c *csr) {
		c.Spec.ExpirationSeconds = new(int32(60))
	}, Refuse, "LifetimeInvalid"},
	"for a life below nothing is refused": {func(c *csr) {
		c.Spec.ExpirationSeconds = new(int32(-1))
	}, Refuse, "LifetimeInvalid"},
	"for a life of an hour is approved": {func(c *csr) {
		c.Spec.ExpirationSeconds = new(int32(3600))
	}, Approve, ""},
	"without usages is refused": {func(c *csr) { c.Spec.Usages = nil }, Refuse, "UsagesUnexpected"},
	"for signing certificates is refused": {func(c *csr) {
		c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageCertSign)
	}, Refuse, "UsagesUnexpected"},
	"for client and server at once is refused": {func(c *csr) {
		c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageServerAuth, certificatesv1.UsageClientAuth)
	}, Refuse, "UsagesUnexpected"},
	"without its purpose is refused":               {func(c *csr) { c.Spec.Usages = c.Spec.Usages[:1] }, Refuse, "UsagesUnexpected"},
	"without digital signature is refused":         {func(c *csr) { c.Spec.Usages = c.Spec.Usages[1:] }, Refuse, "UsagesUnexpected"},
	"that holds no certificate request is refused": {func(c *csr) { c.Spec.Request = []byte("x") }, Refuse, "RequestMalformed"},
	"with usages in another order is approved": {func(c *csr) {
		c.Spec.Usages[0], c.Spec.Usages[1] = c.Spec.Usages[1], c.Spec.Usages[0]
	}, Approve, ""},
	"that wants key encipherment too is approved": {func(c *csr) {
		c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageKeyEncipherment)
	}, Approve, ""},
	"by the node for itself is approved": {func(*csr) {}, Approve, ""},
}

//
func TestApproveServingRequest(t *testing.T) {
	serving := func(change func(*x509.CertificateRequest)) csr {
		return signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
			newRequest(t, nil, func(r *x509.CertificateRequest) {
				withNames(r)
				if change != nil {
					change(r)
				}
			}))
	}
	for name, invalid := range invalidRequests {
		t.Run("a request "+name, func(t *testing.T) {
			request := serving(nil)
			invalid.change(&request)
			expectOutcome(t, judgeServing(request, knownNodes), invalid.outcome, invalid.check)
		})
	}
	for name, invalid := range invalidSubjects {
		t.Run("a request with "+name+" is refused", func(t *testing.T) {
			expectOutcome(t, judgeServing(serving(invalid.change), knownNodes), Refuse, invalid.check)
		})
	}
	for name, c := range map[string]struct {
		change  func(*x509.CertificateRequest)
		outcome Outcome
		check   string
	}{
		"the name under which it is listed": {func(r *x509.CertificateRequest) {
			r.DNSNames = []string{"win-a.example.com"}
		}, Approve, ""},
		"that name in lower case": {func(r *x509.CertificateRequest) {
			r.DNSNames = []string{"listed.example.com"}
		}, Approve, ""},
		"that name in capitals": {func(r *x509.CertificateRequest) {
			r.DNSNames = []string{"WIN-A.EXAMPLE.COM"}
		}, Refuse, "NamesUnknown"},
		"an address that the host alone tells":        {func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 8)} }, Approve, ""},
		"an address that two hosts tell":              {func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 9)} }, Refuse, "ForeignIdentity"},
		"an address of a Service that its host tells": {func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(172, 30, 0, 9)} }, Refuse, "ClusterIdentity"},
		"an address only":                             {func(r *x509.CertificateRequest) { r.DNSNames = nil }, Approve, ""},
		"a name only":                                 {func(r *x509.CertificateRequest) { r.IPAddresses = nil }, Approve, ""},
		"no name at all":                              {func(r *x509.CertificateRequest) { r.DNSNames, r.IPAddresses = nil, nil }, Refuse, "NameTypesUnsupported"},
		"an e-mail address":                           {func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@example.com"} }, Refuse, "NameTypesUnsupported"},
		"a URI":                                       {func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }, Refuse, "NameTypesUnsupported"},
		"an alternative name of another kind":         {func(r *x509.CertificateRequest) { r.ExtraExtensions = []pkix.Extension{otherName(t)} }, Refuse, "NameTypesUnsupported"},
		"the name of the API server too":              {func(r *x509.CertificateRequest) { r.DNSNames = append(r.DNSNames, "api-int.example.com") }, Refuse, "NamesUnknown"},
		"a name that begins with its own":             {func(r *x509.CertificateRequest) { r.DNSNames = []string{"win-ab"} }, Refuse, "NamesUnknown"},
		"its name with a trailing dot":                {func(r *x509.CertificateRequest) { r.DNSNames = []string{"win-a."} }, Refuse, "NamesUnknown"},
		"a wildcard":                                  {func(r *x509.CertificateRequest) { r.DNSNames = []string{"*.example.com"} }, Refuse, "NamesUnknown"},
		"the address of the API server too":           {func(r *x509.CertificateRequest) { r.IPAddresses = append(r.IPAddresses, net.IPv4(172, 30, 0, 1)) }, Refuse, "AddressesUnknown"},
		"an IPv6 address":                             {func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv6loopback} }, Refuse, "AddressesUnknown"},
		"a name that another node has too":            {func(r *x509.CertificateRequest) { r.DNSNames = []string{"shared.example.com"} }, Refuse, "ForeignIdentity"},
		"an address that another node has":            {func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 2)} }, Refuse, "ForeignIdentity"},
	} {
		t.Run("a request that holds "+name, func(t *testing.T) {
			expectOutcome(t, judgeServing(serving(c.change), knownNodes), c.outcome, c.check)
		})
	}
	t.Run("another Node's name, with the node's own certificate, is forged and denied", func(t *testing.T) {
		request := serving(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:master-0" })
		expectOutcome(t, judgeServing(request, knownNodes), Deny, "Impersonation")
	})
	t.Run("a client's request to the signer of serving certificates is refused", func(t *testing.T) {
		request := signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageClientAuth, newRequest(t, nil, nil))
		expectOutcome(t, judgeServing(request, knownNodes), Refuse, "UsagesUnexpected")
	})
}

//
func TestApproveClientRenewal(t *testing.T) {
	renewal := func(change func(*x509.CertificateRequest)) csr {
		return signingRequest(certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth,
			newRequest(t, nil, change))
	}
	for name, invalid := range invalidRequests {
		t.Run("a request "+name, func(t *testing.T) {
			request := renewal(nil)
			invalid.change(&request)
			expectOutcome(t, judgeRenewal(request, knownNodes), invalid.outcome, invalid.check)
		})
	}
	for name, invalid := range invalidSubjects {
		t.Run("a request with "+name+" is refused", func(t *testing.T) {
			expectOutcome(t, judgeRenewal(renewal(invalid.change), knownNodes), Refuse, invalid.check)
		})
	}
	t.Run("another Node's name, with the node's own certificate, is forged and denied", func(t *testing.T) {
		for _, other := range []string{"master-0", "win-b"} {
			request := renewal(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:" + other })
			expectOutcome(t, judgeRenewal(request, knownNodes), Deny, "Impersonation")
		}
	})
	t.Run("a request with a name to serve is refused", func(t *testing.T) {
		expectOutcome(t, judgeRenewal(renewal(withNames), knownNodes), Refuse, "NamesUnexpected")
	})
}

func FuzzRequests(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"), true)
	f.Add(newRequest(f, nil, withNames), false)
	f.Fuzz(func(t *testing.T, der []byte, wrap bool) {
		if wrap {
			der = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		}
		request := signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth, der)
		if got := judgeServing(request, knownNodes); got.Outcome == Ignore || got.Message == "" {
			t.Errorf("%+v", got)
		}
		if kubeletClientRequest(der, "master-0").Allowed {
			t.Error("a request for another node is allowed")
		}
	})
}
