package certrequest

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func netipOf(address []byte) netip.Addr {
	result, _ := netip.AddrFromSlice(address)
	return result
}

// FuzzServingRequest judges arbitrary requests of a node, and compares each decision with a second implementation of
// the rules.
func FuzzServingRequest(f *testing.F) {
	key := ecdsaKey(f, elliptic.P256())
	commonNames := []string{"system:node:win-a", "system:node:win-b", "system:node:WIN-A", "system:node:win-a.",
		"system:node:wіn-a", ""}
	for _, commonName := range commonNames {
		for _, organization := range []string{"system:nodes", "system:masters", ""} {
			for _, dns := range []string{"", "win-a", "win-a.", "WIN-A", "win-b", "win-a.example.com",
				"*.example.com", "kubernetes"} {
				for _, address := range [][]byte{nil, {10, 0, 0, 1}, {10, 0, 0, 2}, {127, 0, 0, 1}} {
					f.Add(commonName, organization, dns, address, "system:node:win-a", int32(0), uint8(0b01), int64(0))
				}
			}
		}
	}
	for usages := range uint8(16) {
		f.Add("system:node:win-a", "system:nodes", "win-a", []byte{10, 0, 0, 1}, "system:node:win-a",
			int32(3600), usages, int64(1))
	}
	for _, seconds := range []int32{-1, 1, 599, 600, 31536000, 31536001} {
		f.Add("system:node:win-a", "system:nodes", "win-a", []byte(nil), "system:node:win-a", seconds,
			uint8(0b01), int64(-7200))
	}
	f.Fuzz(func(t *testing.T, commonName, organization, dns string, address []byte, user string, seconds int32,
		usages uint8, age int64) {
		if user == "system:node:win-b" {
			t.Skip() // another node, with other rights
		}
		template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName}}
		if organization != "" {
			template.Subject.Organization = []string{organization}
		}
		if dns != "" {
			template.DNSNames = []string{dns}
		}
		if len(address) == net.IPv4len || len(address) == net.IPv6len {
			template.IPAddresses = []net.IP{address}
		} else {
			address = nil
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
		if err != nil {
			t.Skip() // not even a request
		}
		a := rightAttempt(certificatesv1.KubeletServingSignerName)
		a.csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: der})
		a.csr.Spec.Username = user
		if seconds != 0 {
			a.csr.Spec.ExpirationSeconds = new(seconds)
		}
		a.csr.CreationTimestamp = metav1.NewTime(attackTime.Add(time.Duration(age%1e6) * time.Second))
		a.csr.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature}
		for i, usage := range []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth, certificatesv1.UsageCertSign} {
			if usages&(1<<i) != 0 {
				a.csr.Spec.Usages = append(a.csr.Spec.Usages, usage)
			}
		}
		own := commonName == "system:node:win-a" && organization == "system:nodes" && user == "system:node:win-a"
		named := slices.Contains([]string{"", "win-a", "win-a.example.com", "Win-A.example.com"}, dns) && (dns != "" || address != nil)
		// crypto/x509 writes an IPv4-mapped IPv6 address as an IPv4 address.
		located := address == nil || net.IP(address).Equal(net.IPv4(10, 0, 0, 1)) || net.IP(address).Equal(net.IPv4(10, 0, 0, 8))
		sane := (seconds == 0 || seconds >= 600 && seconds <= 365*24*3600) && usages&0b1101 == 1 && age%1e6 >= -3600
		got := a.signAndJudge(t, key)
		if want := own && named && located && sane; (got.Outcome == Approve) != want {
			t.Errorf("decision is %+v; approved it should be: %t", got, want)
		}
	})
}

// a kubelet's request is approved for any of the node's own names and addresses, and with any key.
func TestJudge_OwnNamesAndAddressesApproved(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := []any{ecdsaKey(t, elliptic.P256()), ecdsaKey(t, elliptic.P384()), ecdsaKey(t, elliptic.P521()),
		rsaKey(t, 2048), edwards}
	rapid.Check(t, func(t *rapid.T) {
		octets := rapid.Permutation([]byte{1, 2, 3, 4, 5, 6, 7, 8}).Draw(t, "octets")
		names := rapid.Permutation([]string{"win-a.example.com", "ip-10-9-0-1.ec2.internal", "WIN-A.corp",
			"win-a.eastus.cloudapp.azure.com"}).Draw(t, "names")
		split := rapid.IntRange(0, 4).Draw(t, "split")
		node := Node{Name: "win-a", Registered: true, Since: attackTime.Add(-time.Hour), Assigned: newNames("win-a")}
		other := Node{Name: "win-b", Registered: true, Assigned: newNames("win-b")}
		template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:win-a",
			Organization: []string{"system:nodes"}}}
		for i, octet := range octets[:6] {
			set := &node.Assigned
			if i >= split {
				set = &node.Reported
			}
			set.Add(fmt.Sprintf("10.9.0.%d", octet))
			if rapid.Bool().Draw(t, "asks for it") {
				template.IPAddresses = append(template.IPAddresses, net.IPv4(10, 9, 0, octet))
			}
			if i < split { // a false claim does not take an address from its owner
				other.Reported.Add(fmt.Sprintf("10.9.0.%d", octet))
			}
		}
		other.Assigned.Add(fmt.Sprintf("10.9.0.%d", octets[7]))
		for _, name := range names {
			node.Assigned.Add(name)
			if rapid.Bool().Draw(t, "asks for it") {
				template.DNSNames = append(template.DNSNames, name)
			}
		}
		if len(template.DNSNames)+len(template.IPAddresses) == 0 {
			template.DNSNames = []string{"win-a"}
		}
		if foreignName := rapid.IntRange(0, 2).Draw(t, "what is another's"); foreignName > 0 {
			expectRefusal(t, node, other, *template, foreignName == 1, octets[7])
			return
		}
		key := rapid.SampledFrom(keys).Draw(t, "key")
		csr := signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
			signedBy(t, template, key))
		csr.CreationTimestamp = metav1.NewTime(attackTime)
		if rapid.Bool().Draw(t, "as older kubelets ask") {
			csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.UsageKeyEncipherment)
		}
		csr.Spec.Usages = rapid.Permutation(csr.Spec.Usages).Draw(t, "usages")
		known := Facts{Nodes: rapid.Permutation([]Node{node, other}).Draw(t, "nodes"),
			Cluster: rightAttempt("").known.Cluster}
		if got := Judge(csr, known); got.Outcome != Approve {
			t.Fatalf("serving: %+v", got)
		}
		csr = signingRequest(certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth,
			signedBy(t, &x509.CertificateRequest{Subject: template.Subject}, key))
		csr.CreationTimestamp = metav1.NewTime(attackTime)
		if got := Judge(csr, known); got.Outcome != Approve {
			t.Fatalf("renewal: %+v", got)
		}
	})
}

// expectRefusal adds one name or address that is foreign or unknown to the request.
func expectRefusal(t *rapid.T, node, other Node, template x509.CertificateRequest,
	address bool, foreignOctet byte) {
	if address {
		template.IPAddresses = append(template.IPAddresses,
			net.IPv4(10, 9, 0, rapid.SampledFrom([]byte{foreignOctet, 99}).Draw(t, "address")))
	} else {
		template.DNSNames = append(template.DNSNames, rapid.SampledFrom([]string{"win-b", "win-c", "win-b.example.com",
			"WIN-A", "win-a."}).Draw(t, "name"))
	}
	if rapid.Bool().Draw(t, "the host says that it is its own") {
		node.Reported.Add(fmt.Sprintf("10.9.0.%d", foreignOctet))
		if address {
			template.IPAddresses[len(template.IPAddresses)-1] = net.IPv4(10, 9, 0, foreignOctet)
		}
	}
	csr := signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
		signedBy(t, &template, ecdsaOf(t)))
	csr.CreationTimestamp = metav1.NewTime(attackTime)
	known := Facts{Nodes: []Node{node, other}, Cluster: rightAttempt("").known.Cluster}
	if got := Judge(csr, known); got.Outcome != Refuse {
		t.Fatalf("%+v", got)
	}
}

func ecdsaOf(t *rapid.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signedBy(t *rapid.T, template *x509.CertificateRequest, key any) []byte {
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: der})
}
