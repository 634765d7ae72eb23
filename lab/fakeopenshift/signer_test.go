package fakeopenshift

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

// unsigned is a control plane without approver and signer.
var unsigned = clustertest.New(cluster.Options{
	Profile: cluster.OpenShift, BootTimeout: 5 * time.Minute, ExternalSigner: true, NoRenewalApproval: true,
})

// startSigner runs a signer with the given validity on a control plane that has none.
func startSigner(t *testing.T, validity Validity) (fixture, *Signer) {
	t.Helper()
	c := unsigned.Cluster(t)
	admin, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := c.CSRSigner()
	if err != nil {
		t.Fatal(err)
	}
	s := NewSigner(authority, clock.RealClock{}, func(string, time.Time) Validity { return validity })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, c.Config, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return fixture{t, c.Config, admin}, s
}

// approveRequest approves a request as an administrator does.
func (f fixture) approveRequest(name string) {
	f.t.Helper()
	requests := f.admin.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	})
	if _, err := requests.UpdateApproval(f.t.Context(), name, request, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f fixture) awaitCertificate(name string) (certificate []byte) {
	f.t.Helper()
	f.awaitCondition("the certificate of "+name, func(ctx context.Context) (bool, error) {
		request, err := f.admin.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			certificate = request.Status.Certificate
		}
		return len(certificate) > 0, err
	})
	return certificate
}

func TestSigner(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	f, s := startSigner(t, Validity{NotBefore: noon, NotAfter: noon.Add(time.Hour)})
	kubelet := pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes"}}
	client := func(subject pkix.Name, ip string) string {
		return f.requestCertificate("system:node:a", certificatesv1.KubeAPIServerClientKubeletSignerName, subject, ip,
			certificatesv1.UsageClientAuth)
	}
	pending, withAddress, serving, renewal := client(kubelet, ""), "", f.requestServing("a", "10.0.0.8"), client(kubelet, "")
	t.Run("what is approved is signed for the time that it was given, and the kubelet's usage", func(t *testing.T) {
		for name, usage := range map[string]x509.ExtKeyUsage{serving: x509.ExtKeyUsageServerAuth,
			renewal: x509.ExtKeyUsageClientAuth} {
			f.approveRequest(name)
			block, _ := pem.Decode(f.awaitCertificate(name))
			leaf, err := x509.ParseCertificate(block.Bytes)
			if err != nil || !leaf.NotBefore.Equal(noon) || !leaf.NotAfter.Equal(noon.Add(time.Hour)) ||
				leaf.Subject.CommonName != kubelet.CommonName ||
				len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != usage {
				t.Errorf("it is %+v (%v)", leaf, err)
			}
		}
	})
	t.Run("it remembers what it has signed for each user", func(t *testing.T) {
		f.awaitCondition("both", func(context.Context) (bool, error) { return len(s.Signed()) == 2, nil })
		for _, signed := range s.Signed() {
			if signed.User != kubelet.CommonName || signed.Requester != "system:node:a" || signed.Leaf == nil {
				t.Errorf("it remembers %+v", signed)
			}
		}
	})
	t.Run("a renewal that nobody has approved waits, and so does what its signer does not give", func(t *testing.T) {
		withAddress = f.requestCertificate("system:node:b", certificatesv1.KubeAPIServerClientSignerName, kubelet, "10.0.0.8",
			certificatesv1.UsageServerAuth)
		f.approveRequest(withAddress)
		last := client(kubelet, "")
		f.approveRequest(last)
		f.awaitCertificate(last) // earlier requests were processed before
		for _, name := range []string{pending, withAddress} {
			request, err := f.admin.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || len(request.Status.Certificate) > 0 || name == pending && len(request.Status.Conditions) > 0 {
				t.Errorf("%s: %+v (%v)", name, request, err)
			}
		}
	})
	t.Run("a renewal that is held back waits, a first certificate does not, and the renewal is signed after that", func(t *testing.T) {
		release := s.HoldRenewals()
		held := client(kubelet, "")
		f.approveRequest(held)
		first := f.requestServing("c", "10.0.0.9")
		f.approveRequest(first)
		f.awaitCertificate(first)
		request, err := f.admin.CertificatesV1().CertificateSigningRequests().Get(t.Context(), held, metav1.GetOptions{})
		if err != nil || len(request.Status.Certificate) > 0 {
			t.Errorf("it is %+v (%v)", request, err)
		}
		release()
		f.awaitCertificate(held)
	})
}
