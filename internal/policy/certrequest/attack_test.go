package certrequest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509/pkix"
	"encoding/asn1"
	"maps"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// attempt is a request by the managed node win-a, with the facts of the operator. Spoilers make a valid attempt
// invalid.
type attempt struct {
	csr     certificatesv1.CertificateSigningRequest
	request manualRequest
	names   []asn1.RawValue
	more    []pkix.Extension
	known   Facts
	// forged is the Node that the request impersonates.
	forged string
}

var attackTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rightAttempt requests only names that the node may have.
func rightAttempt(signer string) *attempt {
	a := &attempt{known: Facts{
		Nodes: []Node{
			{Name: "win-a", Registered: true, Since: attackTime.Add(-time.Hour), Assigned: newNames("win-a", "Win-A.example.com",
				"10.0.0.1"), Reported: newNames("10.0.0.8", "10.0.0.66")},
			{Name: "win-b", Registered: true, Assigned: newNames("win-b", "10.0.0.2"), Reported: newNames("10.0.0.22", "10.0.0.66")},
			{Name: "master-0", Foreign: true, Registered: true, Assigned: newNames("master-0", "master-0.example.com", "10.0.0.3")},
			{Name: "of Machine worker-7", Foreign: true, Assigned: newNames("worker-7", "10.0.0.7")},
			{Name: "of WindowsInstance win-c", Foreign: true, Assigned: newNames("10.0.0.5"), Reported: newNames("10.0.0.55")},
		},
		Cluster: &nodespec.Cluster{
			ServiceCIDRs: []string{"172.30.0.0/16"}, VirtualIPs: []string{"10.0.0.250"},
			APIServerInternalURL: "https://api-int.lab.example.com:6443",
			Network: nodespec.ClusterNetwork{PodNetworks: []string{"10.128.0.0/14"},
				HybridClusterNetworks: []string{"10.132.0.0/14"}},
		},
	}}
	purpose := certificatesv1.UsageClientAuth
	if signer == certificatesv1.KubeletServingSignerName {
		purpose = certificatesv1.UsageServerAuth
		a.names = []asn1.RawValue{servedName("win-a"), servedName("win-a.example.com"), servedAddress(10, 0, 0, 1),
			servedAddress(10, 0, 0, 8)}
	}
	a.csr = signingRequest(signer, purpose, nil)
	a.csr.CreationTimestamp = metav1.NewTime(attackTime)
	a.csr.UID = types.UID("uid")
	return a
}

// signAndJudge signs the request and judges it.
func (a *attempt) signAndJudge(t testing.TB, key *ecdsa.PrivateKey) Decision {
	t.Helper()
	extensions := slices.Clone(a.more)
	if len(a.names) > 0 {
		extensions = append(extensions, alternativeNames(t, a.names...))
	}
	if len(extensions) > 0 {
		a.request.attributes = append(a.request.attributes, extensionRequest(t, extensions))
	}
	if a.csr.Spec.Request == nil {
		a.csr.Spec.Request = a.request.signRequest(t, key)
	}
	return Judge(a.csr, a.known)
}

type mutation = func(*attempt)

// withCommonName sets the common name of the request.
func withCommonName(name string) mutation {
	return func(a *attempt) {
		a.request.subject = []relativeNameSET{{plainOrganization}, {commonNameValue(asn1Text(asn1.TagUTF8String, name))}}
		a.forged = map[string]string{"system:node:master-0": "master-0", "system:node:win-b": "win-b"}[name]
	}
}

func inGroups(groups ...string) mutation {
	return func(a *attempt) {
		a.forged, a.request.subject = "", []relativeNameSET{{plainCommonName}}
		for _, group := range groups {
			a.request.subject = append(a.request.subject, relativeNameSET{organizationValue(asn1Text(asn1.TagUTF8String, group))})
		}
	}
}

func withServingNames(names ...asn1.RawValue) mutation {
	return func(a *attempt) { a.names = append(a.names, names...) }
}

func withCSRSpec(change func(*certificatesv1.CertificateSigningRequestSpec)) mutation {
	return func(a *attempt) { change(&a.csr.Spec) }
}

func withUsages(usages ...certificatesv1.KeyUsage) mutation {
	return withCSRSpec(func(s *certificatesv1.CertificateSigningRequestSpec) { s.Usages = usages })
}

// requestMutations are attacks on requests for any signer. No spoiler reverts the effect of another.
func requestMutations(t testing.TB) map[string]mutation {
	all := map[string]mutation{
		"the right usages twice": withUsages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth),
		"no usages":              withUsages(),
		"all usages":             withUsages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth),
		"signing certificates":   withUsages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth, certificatesv1.UsageCertSign),
		"any usage":              withUsages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageAny),
		"a life of a century":    withCSRSpec(func(s *certificatesv1.CertificateSigningRequestSpec) { s.ExpirationSeconds = new(int32(2147483647)) }),
		"a life of a second":     withCSRSpec(func(s *certificatesv1.CertificateSigningRequestSpec) { s.ExpirationSeconds = new(int32(1)) }),
		"no groups":              withCSRSpec(func(s *certificatesv1.CertificateSigningRequestSpec) { s.Groups = nil }),
		"the groups of a bootstrapper": withCSRSpec(func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Groups = []string{"system:bootstrappers", "system:authenticated"}
		}),
		"the groups of an administrator": withCSRSpec(func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Groups = []string{"system:masters", "system:authenticated"}
		}),
		"a request from before the node's host had the name": func(a *attempt) { a.csr.CreationTimestamp = metav1.NewTime(attackTime.Add(-2 * time.Hour)) },
		"a Node that was made since":                         func(a *attempt) { a.known.Nodes[0].Since = attackTime.Add(time.Second) },
		"no Node of the name":                                func(a *attempt) { a.known.Nodes[0].Registered = false },
		"a second instance of the same name": func(a *attempt) {
			second := Node{Name: "win-a", Registered: true, Assigned: newNames("win-a", "10.0.0.1")}
			a.known.Nodes = append(a.known.Nodes, second, second) // still two if another spoiler removes the first node
		},
		"no instance of the name": func(a *attempt) { a.known.Nodes = a.known.Nodes[1:] },
		"a name that is not ours": func(a *attempt) { a.known.Nodes[0].Foreign = true },
		"an extension of a CA": func(a *attempt) {
			a.more = append(a.more, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}})
		},
		"an extension for usages": func(a *attempt) {
			a.more = append(a.more, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Value: []byte{0x30, 0}})
		},
		"an extension of nobody's": func(a *attempt) {
			a.more = append(a.more, pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3}, Value: []byte{5, 0}})
		},
		"an e-mail address": withServingNames(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 1, Bytes: []byte("a@example.com")}),
		"a URI":             withServingNames(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte("spiffe://x/y")}),
		"a registered name": withServingNames(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 8, Bytes: []byte{0x2a, 3}}),
	}
	for _, user := range []string{"", "system:node:", "system:node:WIN-A", "system:node:win-a.", "system:node:wіn-a", "system:node:win-b", "system:node:master-0", "system:bootstrap:abcdef",
		"system:admin", "win-a", "system:node:win-a ", "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"} {
		all["by "+user] = func(a *attempt) {
			a.csr.Spec.Username = user
			a.forged = map[string]string{"system:node:win-b": "win-a"}[user] // the node named in the request
		}
	}
	for _, signer := range []string{"", certificatesv1.KubeAPIServerClientSignerName, "kubernetes.io/legacy-unknown", "kubernetes.io/kubelet-serving ", "Kubernetes.io/kubelet-serving", "example.com/x"} {
		all["to "+signer] = withCSRSpec(func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = signer })
	}
	for _, name := range []string{"", "win-a", "system:node:", "system:node:master-0", "system:node:win-b", "system:node:nobody", "system:node:WIN-A", "System:node:win-a", "system:node:win-a.", "system:node:win-a.example.com",
		"system:node:wіn-a", "system:node:win‐a", "system:node:win-a\u200b", "system:node:win-a\x00", "system:node:win-a,CN=system:admin", "system:node:win-a\n", " system:node:win-a", "system:admin", "system:kube-controller-manager",
		"system:ovn-node:win-a", "windowsmachineconfig.openshift.io:agent:win-a"} {
		all["in the name "+name] = withCommonName(name)
	}
	for name, groups := range map[string][]string{
		"no group": {}, "masters": {"system:masters"}, "masters too": {"system:nodes", "system:masters"}, "masters first": {"system:masters", "system:nodes"}, "nodes twice": {"system:nodes", "system:nodes"},
		"nodes in capitals": {"SYSTEM:NODES"}, "a node of another kind": {"system:ovn-nodes"}, "nodes with a dot": {"system:nodes."}, "agents": {"windowsmachineconfig.openshift.io:agents"},
		"nodes with a letter that looks so": {"system:nοdes"},
	} {
		all["for "+name] = inGroups(groups...)
	}
	for name, invalid := range invalidForms(t) {
		all["with "+name] = func(a *attempt) {
			before := a.request
			a.request, a.forged = invalid.request, ""
			if invalid.request.subject == nil && invalid.request.rawSubject == nil {
				a.request.subject = before.subject
			}
		}
	}
	return all
}

// servingMutations are attacks on serving certificates only.
func servingMutations() map[string]mutation {
	all := map[string]mutation{
		"nothing to serve under": func(a *attempt) { a.names = nil },
		"the usages of a client": withUsages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth),
		"facts of the cluster that cannot be read, and an address that the host alone tells": func(a *attempt) {
			a.known.Cluster = nil
			withServingNames(servedAddress(10, 0, 0, 8))(a)
		},
	}
	for _, name := range []string{"win-b", "master-0", "master-0.example.com", "worker-7", "WIN-A", "Win-a", "win-a.",
		"WIN-A.EXAMPLE.COM", "win-a.example.com.", "*", "*.example.com", "win-*", "", " ", "win-a ", "win-ab", "in-a",
		"win-a.other.com", "xn--wn-a-4xa", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local", "api-int.lab.example.com", "api.lab.example.com",
		"oauth-openshift.apps.lab.example.com", "10.0.0.1", "win-a\x00.example.com"} {
		all["the name "+name] = withServingNames(servedName(name))
		// The request is refused even if the reserved name is the host's own.
		if nodename.ReservedName(name, rightAttempt("").known.Cluster) != "" {
			all["the name "+name+", which is the host's own"] = func(a *attempt) {
				a.known.Nodes[0].Assigned.Names = append(a.known.Nodes[0].Assigned.Names, name)
				withServingNames(servedName(name))(a)
			}
		}
	}
	for name, address := range map[string][]byte{
		"of another node": {10, 0, 0, 2}, "of another node's second network": {10, 0, 0, 22}, "of the control plane": {10, 0,
			0, 3}, "of a Machine without a Node": {10, 0, 0, 7}, "of a host that joins": {10, 0, 0, 5},
		"that a joining host tells": {10, 0, 0, 55}, "that another node's host tells too": {10, 0, 0, 66},
		"of nobody": {10, 0, 0, 99}, "of the API server": {10, 0, 0, 250}, "of the Kubernetes Service": {172, 30, 0, 1},
		"of a pod": {10, 128, 0, 5}, "of a Windows pod": {10, 132, 0, 5}, "of itself": {127, 0, 0, 1},
		"of the metadata service": {169, 254, 169, 254}, "of all": {224, 0, 0, 1}, "of everybody": {255, 255, 255, 255},
		"of none":       {0, 0, 0, 0},
		"of the future": {240, 0, 0, 1}, "of its own in IPv6": {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1},
		"of itself in IPv6": {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, "of a link": {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0,
			0, 0, 0, 0, 0, 0, 1},
		"that is cut off": {10, 0, 0}, "that is empty": {}, "with a mask": {10, 0, 0, 1, 255, 255, 255, 255},
	} {
		all["the address "+name] = withServingNames(servedAddress(address...))
		if len(address) == 4 && name != "of nobody" {
			all["the address "+name+", which the host tells as its own"] = func(a *attempt) {
				a.known.Nodes[0].Reported.Addresses = append(a.known.Nodes[0].Reported.Addresses, netipOf(address))
				withServingNames(servedAddress(address...))(a)
			}
		}
	}
	return all
}

// pairs is the number of further variations combined with each variation.
const pairs = 9

//
func TestJudge_MaliciousRequestNotApproved(t *testing.T) {
	key := ecdsaKey(t, elliptic.P256())
	for signer, tries := range map[string]map[string]mutation{
		certificatesv1.KubeletServingSignerName:             requestMutations(t),
		certificatesv1.KubeAPIServerClientKubeletSignerName: requestMutations(t),
	} {
		if signer == certificatesv1.KubeletServingSignerName {
			maps.Copy(tries, servingMutations())
		} else {
			tries["the usages of a server"] = withUsages(certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth)
			tries["its own name to serve under"] = withServingNames(servedName("win-a"))
			tries["its own address to serve under"] = withServingNames(servedAddress(10, 0, 0, 1))
		}
		names := slices.Sorted(maps.Keys(tries))
		if got := rightAttempt(signer).signAndJudge(t, key); got.Outcome != Approve {
			t.Fatalf("the request to %s that nobody has spoiled is decided on with %+v", signer, got)
		}
		for i, first := range names {
			a := rightAttempt(signer)
			tries[first](a)
			expectNotApproved(t, a.signAndJudge(t, key), a.forged, signer+": "+first)
			for j := range pairs {
				a, second := rightAttempt(signer), names[(i+1+j*len(names)/pairs)%len(names)]
				tries[first](a)
				tries[second](a)
				if a.csr.Spec.Username == "system:node:win-b" && a.forged == "win-b" {
					continue // another node's request for itself
				}
				if got := a.signAndJudge(t, key); got.Outcome == Approve {
					t.Errorf("%s: %s and %s: approved", signer, first, second)
				}
			}
		}
		t.Logf("%s: %d variations, and each with %d others", signer, len(names), pairs)
	}
}

// expectNotApproved reports a request that was approved, denied without a forgery, or refused without a message.
func expectNotApproved(t *testing.T, got Decision, forged, what string) {
	t.Helper()
	switch {
	case got.Outcome == Approve:
		t.Errorf("%s: approved", what)
	case (got.Outcome == Deny) != (forged != ""):
		t.Errorf("%s: %s, forged is %q: %s", what, got.Outcome, forged, got.Message)
	case got.Outcome != Ignore && (got.Message == "" || got.Check == "" || got.NodeName == ""):
		t.Errorf("%s: the decision does not name the fault and the node: %+v", what, got)
	case len(got.Message) > 900:
		t.Errorf("%s: the message has %d bytes", what, len(got.Message))
	}
}
