package certrequest

import (
	"crypto/x509"
	"net"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// servingRequest returns a request of win-a that is approved.
func servingRequest(t *testing.T, change func(*x509.CertificateRequest)) csr {
	t.Helper()
	return signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
		newRequest(t, nil, func(r *x509.CertificateRequest) {
			withNames(r)
			if change != nil {
				change(r)
			}
		}))
}

func TestServingRequest_LifetimeAtMostOneYear(t *testing.T) {
	const year = 365 * 24 * 3600
	for seconds, outcome := range map[int32]Outcome{599: Refuse, 600: Approve, year: Approve, year + 1: Refuse} {
		request := servingRequest(t, nil)
		request.Spec.ExpirationSeconds = new(seconds)
		check := ""
		if outcome == Refuse {
			check = "LifetimeInvalid"
		}
		expectOutcome(t, judgeServing(request, knownNodes), outcome, check)
	}
}

func TestServingRequest_ReportedAddressRefusedWithoutCluster(t *testing.T) {
	known := knownNodes
	known.Cluster = nil
	expectOutcome(t, judgeServing(servingRequest(t, nil), known), Approve, "")
	told := servingRequest(t, func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 8)} })
	expectOutcome(t, judgeServing(told, known), Refuse, "ClusterIdentity")
}

func TestServingRequest_DuplicateNodeNameRefused(t *testing.T) {
	known := knownNodes
	known.Nodes = append(slices.Clone(known.Nodes), Node{Name: "win-a", Registered: true})
	expectOutcome(t, judgeServing(servingRequest(t, nil), known), Refuse, "InstanceAmbiguous")
}

func TestServingRequest_UnregisteredNodeRefusedNotDenied(t *testing.T) {
	known := knownNodes
	known.Nodes = append(slices.Clone(known.Nodes), Node{Name: "win-z", Assigned: newNames("win-z")})
	request := servingRequest(t, func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:win-z" })
	expectOutcome(t, judgeServing(request, known), Refuse, "CommonNameMismatch")
}

func TestServingRequest_ForeignNameRefusedInAnyForm(t *testing.T) {
	known := knownNodes
	known.Nodes = append(slices.Clone(known.Nodes), Node{Name: "master-1", Foreign: true,
		Assigned: newNames("WIN-A.Example.COM.")})
	request := servingRequest(t, func(r *x509.CertificateRequest) { r.DNSNames = []string{"win-a.example.com"} })
	expectOutcome(t, judgeServing(request, known), Refuse, "ForeignIdentity")
}

func TestIsRequestOf_OnlyKubeletSigners(t *testing.T) {
	request := servingRequest(t, nil)
	for signer, is := range map[string]bool{
		certificatesv1.KubeletServingSignerName: true, certificatesv1.KubeAPIServerClientKubeletSignerName: true,
		certificatesv1.KubeAPIServerClientSignerName: false, "example.com/signer": false, "": false,
	} {
		request.Spec.SignerName = signer
		if IsRequestOf(request, "win-a") != is {
			t.Errorf("%q: want %t", signer, is)
		}
	}
}
