package test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

const (
	pki                = `C:\var\lib\kubelet\pki`
	currentCertificate = pki + `\kubelet-client-current.pem`
)

func isNodeReady(n *corev1.Node) bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// markNodeLost sets the Ready condition of a node to Unknown, as the node lifecycle controller does for a silent
// kubelet.
func markNodeLost(t *testing.T, r *testenv.Environment, name string) {
	t.Helper()
	n := getNode(t, r, name)
	before := n.DeepCopy()
	for i := range n.Status.Conditions {
		if condition := &n.Status.Conditions[i]; condition.Type == corev1.NodeReady {
			condition.Status, condition.Reason, condition.Message = corev1.ConditionUnknown, "NodeStatusUnknown",
				"Kubelet stopped posting node status."
			condition.LastTransitionTime = metav1.Now()
		}
	}
	requireNoError(t, r.Client.Status().Patch(t.Context(), n, client.MergeFrom(before)))
}

// expiredPair returns a node certificate that expired yesterday, with its key.
func expiredPair(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	requireNoError(t, err)
	yesterday := time.Now().Add(-24 * time.Hour)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: yesterday.Add(-24 * time.Hour), NotAfter: yesterday,
		Subject:     pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	requireNoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(key)
	requireNoError(t, err)
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})...)
}

func TestStoryANodeThatLostItsCertificateGetsAnotherOverSSH(t *testing.T) {
	for name, c := range map[string]struct {
		lose  func(t *testing.T, h *testenv.Host)
		words string
	}{
		"it was deleted": {func(t *testing.T, h *testenv.Host) {
			requireNoError(t, h.Machine().Drive().Remove(currentCertificate))
		}, "no longer on the host"},
		"it has expired while the host was off": {func(t *testing.T, h *testenv.Host) {
			drive := h.Machine().Drive()
			requireNoError(t, drive.WriteFile(pki+`\kubelet-client-expired.pem`, expiredPair(t, h.Options.Name)))
			requireNoError(t, drive.Symlink(pki+`\kubelet-client-expired.pem`, currentCertificate))
			requireNoError(t, h.Machine().Host().Services.Start(t.Context(), "kubelet"))
		}, "was valid until"},
	} {
		t.Run(name, func(t *testing.T) {
			// The operator inspects a host if its node has not been Ready for two minutes.
			r := newInstalledRig(t, testenv.Options{Cluster: parallelCluster(t), Hosts: testenv.Hosts(1), Clock: e2e.FastClock(t)})
			run(t, r)
			list(t, r)
			waitUntilReady(t, r)
			h := r.Host("instance-1")
			before, err := h.Machine().Drive().ReadFile(currentCertificate)
			requireNoError(t, err)
			uid := getNode(t, r, "instance-1").UID
			requireNoError(t, h.Machine().Host().Services.Stop(t.Context(), "kubelet"))
			c.lose(t, h)

			reported := collectConditions(t, r)
			markNodeLost(t, r, "instance-1")
			waitUntilRestored(t, r, "instance-1")
			after, err := h.Machine().Drive().ReadFile(currentCertificate)
			if err != nil || bytes.Equal(before, after) {
				t.Errorf("the host has no new certificate (%v)", err)
			}
			if got := getNode(t, r, "instance-1").UID; got != uid {
				t.Errorf("the node was made anew: %s, before %s", got, uid)
			}
			if !reported(v1alpha1.ConditionJoined, v1alpha1.ReasonCertificateExpired, c.words) {
				t.Errorf("the status did not say that the certificate %q", c.words)
			}
			if !waitForEvent(t, r, v1alpha1.ReasonCertificateExpired, c.words) {
				t.Errorf("no event says that the certificate %q", c.words)
			}
		})
	}
}

// waitUntilRestored waits until a lost node and its instance are Ready again.
func waitUntilRestored(t *testing.T, r *testenv.Environment, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, "Node "+name+" to be Ready", &corev1.Node{},
		func(ctx context.Context, reader reader) (bool, error) {
			n := &corev1.Node{}
			err := reader.Get(ctx, keyOf("", name), n)
			return err == nil && isNodeReady(n), err
		})
	if err != nil {
		t.Fatal(err)
	}
	waitUntilReady(t, r, name)
}

// collectConditions collects the status conditions of all instances from now on. The returned function ends the
// collection and reports whether a condition was false with the reason and a message containing the words.
func collectConditions(t *testing.T, r *testenv.Environment) (reported func(condition, reason, words string) bool) {
	t.Helper()
	watching, err := r.Client.Watch(t.Context(), &v1alpha1.WindowsInstanceList{})
	requireNoError(t, err)
	t.Cleanup(watching.Stop)
	collected := make(chan []metav1Condition, 1)
	go func() {
		var all []metav1Condition
		for event := range watching.ResultChan() {
			if instance, ok := event.Object.(*v1alpha1.WindowsInstance); ok {
				all = append(all, instance.Status.Conditions...)
			}
		}
		collected <- all
	}()
	return func(condition, reason, words string) bool {
		watching.Stop()
		for _, c := range <-collected {
			if c.Type == condition && c.Status == metav1.ConditionFalse && c.Reason == reason &&
				strings.Contains(c.Message, words) {
				return true
			}
		}
		return false
	}
}

// servingRequest creates a request for a serving certificate, impersonating the user.
func servingRequest(t *testing.T, r *testenv.Environment, name, user, commonName string, groups, names, addresses []string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	requireNoError(t, err)
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName,
		Organization: []string{"system:nodes"}}, DNSNames: names}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	requireNoError(t, err)
	config := rest.CopyConfig(r.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	clientset, err := kubernetes.NewForConfig(config)
	requireNoError(t, err)
	_, err = clientset.CertificatesV1().CertificateSigningRequests().Create(t.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
				SignerName: certificatesv1.KubeletServingSignerName,
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
			},
		}, metav1.CreateOptions{})
	requireNoError(t, err)
}

//
func TestServingCertificates_ForeignRequestsNotDecided(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	address := r.Host("instance-1").Options.Address
	nodes := []string{"system:nodes"}
	servingRequest(t, r, "of-a-linux-node", "system:node:worker-0", "system:node:worker-0", nodes, []string{"worker-0"},
		[]string{"10.9.9.9"})
	servingRequest(t, r, "in-the-name-of-the-windows-node", "mallory", "system:node:instance-1",
		[]string{"system:masters"}, []string{"instance-1"}, []string{address})
	servingRequest(t, r, "for-another-name", "system:node:instance-1", "system:node:instance-1", nodes,
		[]string{"api.lab.example.com"}, []string{address})
	servingRequest(t, r, "for-another-address", "system:node:instance-1", "system:node:instance-1", nodes,
		[]string{"instance-1"}, []string{"10.9.9.9"})
	servingRequest(t, r, "for-its-own", "system:node:instance-1", "system:node:instance-1", nodes,
		[]string{"instance-1"}, []string{address})

	// The approver has already seen the earlier requests when this request is signed.
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, "the node's own request to be signed", &certificatesv1.CertificateSigningRequest{},
		func(ctx context.Context, reader reader) (bool, error) {
			request := &certificatesv1.CertificateSigningRequest{}
			err := reader.Get(ctx, keyOf("", "for-its-own"), request)
			return err == nil && len(request.Status.Certificate) > 0, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"for-another-name", "for-another-address"} {
		if !waitForEvent(t, r, "ServingCertificateNotApproved", name) {
			t.Errorf("no event tells of %s", name)
		}
	}
	for _, name := range []string{"of-a-linux-node", "in-the-name-of-the-windows-node", "for-another-name",
		"for-another-address"} {
		request := &certificatesv1.CertificateSigningRequest{}
		requireNoError(t, r.Client.Get(t.Context(), keyOf("", name), request))
		if len(request.Status.Conditions) > 0 {
			t.Errorf("request %s was decided: %+v", name, request.Status.Conditions)
		}
	}
}
