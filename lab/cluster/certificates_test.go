package cluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"

	"github.com/windows-machine-config/wmco/lab/cluster"
)

const bootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"

// When a later request is issued, the earlier request has been processed and is really waiting.
func TestCertificateSigningRequests(t *testing.T) {
	t.Run("in a plain cluster even a renewal waits for approval", func(t *testing.T) {
		c := plain.Cluster(t)
		admin := newClientset(t, c.Config)
		renewal := requestCertificate(t, c, "system:node:waits", certificatesv1.KubeAPIServerClientKubeletSignerName, "waits")
		other := requestCertificate(t, c, "tester", certificatesv1.KubeAPIServerClientKubeletSignerName, "other")
		approveRequest(t, admin, other)
		other.awaitCertificate(t, admin)
		renewal.checkPending(t, admin)
	})

	t.Run("in an OpenShift cluster a node's renewal is approved and nothing else", func(t *testing.T) {
		c := openshift.Cluster(t)
		admin := newClientset(t, c.Config)
		first := requestCertificate(t, c, bootstrapper, certificatesv1.KubeAPIServerClientKubeletSignerName, "winhost")
		serving := requestCertificate(t, c, "system:node:winhost", certificatesv1.KubeletServingSignerName, "winhost")
		renewal := requestCertificate(t, c, "system:node:winhost", certificatesv1.KubeAPIServerClientKubeletSignerName, "winhost")
		renewal.awaitCertificate(t, admin)
		first.checkPending(t, admin)
		serving.checkPending(t, admin)
	})

	t.Run("a node does not ask for the certificate of another", func(t *testing.T) {
		_, err := tryRequest(t, plain.Cluster(t), "system:node:other", certificatesv1.KubeAPIServerClientKubeletSignerName,
			"winhost")
		if !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want forbidden", err)
		}
	})

	t.Run("an approved client certificate lets the node in", func(t *testing.T) {
		c := plain.Cluster(t)
		admin := newClientset(t, c.Config)
		csr := requestCertificate(t, c, "tester", certificatesv1.KubeAPIServerClientKubeletSignerName, "newnode")
		approveRequest(t, admin, csr)
		config := rest.AnonymousClientConfig(c.Config)
		config.CertData, config.KeyData = csr.awaitCertificate(t, admin), csr.keyPEM
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "newnode"}}
		if _, err := newClientset(t, config).CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Errorf("the node registers itself: %v", err)
		}
	})
}

// logs are transferred from the kubelet through the API server, with mutual authentication.
func TestPodLogs(t *testing.T) {
	c := plain.Cluster(t)
	admin := newClientset(t, c.Config)
	csr := requestCertificate(t, c, "system:node:logger", certificatesv1.KubeletServingSignerName, "logger")
	approveRequest(t, admin, csr)
	pair, err := tls.X509KeyPair(csr.awaitCertificate(t, admin), csr.keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	kubelet := startKubeletServer(t, c, pair)
	createRunningPod(t, admin, "logger", kubelet.Listener.Addr().(*net.TCPAddr).Port)

	stream, err := admin.CoreV1().Pods("default").GetLogs("talker", &corev1.PodLogOptions{}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if logs, _ := io.ReadAll(stream); string(logs) != "hello from /containerLogs/default/talker/main\n" {
		t.Errorf("got %q", logs)
	}
}

// startKubeletServer starts a server that responds like a kubelet to clients with a certificate of the CA for
// kubelet clients.
func startKubeletServer(t *testing.T, c *cluster.Cluster, serving tls.Certificate) *httptest.Server {
	t.Helper()
	bundle, err := os.ReadFile(filepath.Join(c.Dir, "pki", "kubelet-client-ca-bundle.crt"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(bundle)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello from "+r.URL.Path+"\n")
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{serving}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func createRunningPod(t *testing.T, admin kubernetes.Interface, nodeName string, port int) {
	t.Helper()
	createNode(t, admin, nodeName)
	const status = `{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`
	patch := fmt.Appendf(nil, status, port)
	if _, err := admin.CoreV1().Nodes().Patch(t.Context(), nodeName, types.MergePatchType, patch, metav1.PatchOptions{},
		"status"); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "talker"},
		Spec:       corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	if _, err := admin.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// csr is a request for a certificate with a node name.
type csr struct {
	name   string
	keyPEM []byte
}

// requestCertificate requests a certificate for system:node:<node> as user.
func requestCertificate(t *testing.T, c *cluster.Cluster, user, signer, node string) *csr {
	t.Helper()
	created, err := tryRequest(t, c, user, signer, node)
	if err != nil {
		t.Fatalf("request a certificate as %s: %v", user, err)
	}
	return created
}

func tryRequest(t *testing.T, c *cluster.Cluster, user, signer, node string) (*csr, error) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node,
		Organization: []string{"system:nodes"}}}
	usage := certificatesv1.UsageClientAuth
	if signer == certificatesv1.KubeletServingSignerName {
		template.IPAddresses, template.DNSNames = []net.IP{net.ParseIP("127.0.0.1")}, []string{node}
		usage = certificatesv1.UsageServerAuth
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	request := &csr{}
	if request.keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated", groupOf(user)}}
	object, err := newClientset(t, config).CertificatesV1().CertificateSigningRequests().Create(t.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
				SignerName: signer,
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
			},
		}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	request.name = object.Name
	return request, nil
}

func groupOf(user string) string {
	switch {
	case strings.HasPrefix(user, "system:node:"):
		return "system:nodes"
	case user == bootstrapper:
		return "system:serviceaccounts:openshift-machine-config-operator"
	default:
		return "system:masters"
	}
}

func approveRequest(t *testing.T, admin kubernetes.Interface, c *csr) {
	t.Helper()
	requests := admin.CertificatesV1().CertificateSigningRequests()
	object, err := requests.Get(t.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object.Status.Conditions = append(object.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	})
	if _, err := requests.UpdateApproval(t.Context(), c.name, object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitCertificate waits for the certificate.
func (c *csr) awaitCertificate(t *testing.T, admin kubernetes.Interface) []byte {
	t.Helper()
	var certificate []byte
	awaitCondition(t, "wait for the certificate", func(ctx context.Context) (bool, error) {
		object, err := admin.CertificatesV1().CertificateSigningRequests().Get(ctx, c.name, metav1.GetOptions{})
		certificate = object.Status.Certificate
		return len(certificate) > 0, err
	})
	return certificate
}

// checkPending checks that the request is not approved, denied or issued.
func (c *csr) checkPending(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	object, err := admin.CertificatesV1().CertificateSigningRequests().Get(t.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(object.Status.Conditions) > 0 || len(object.Status.Certificate) > 0 {
		t.Errorf("the request of %s does not wait: %+v", object.Spec.Username, object.Status.Conditions)
	}
}
