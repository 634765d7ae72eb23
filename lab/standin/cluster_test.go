package standin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

const kubeletConfigFile = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {x509: {clientCAFile: 'C:\k\kubelet-ca.crt'}, anonymous: {enabled: false}}
authorization: {mode: Webhook}
rotateCertificates: true
serverTLSBootstrap: true
registerWithTaints:
- {key: os, value: Windows, effect: NoSchedule}
- {key: startup-taint.cluster-autoscaler.kubernetes.io/windows-not-ready, effect: NoSchedule}
`

// clusterHost is a host with a kubeconfig for the cluster and a signed client certificate.
type clusterHost struct {
	*testHost
	cluster *cluster.Cluster
	admin   kubernetes.Interface
	node    string
}

func newClusterHost(t *testing.T, name string, options Options) *clusterHost {
	t.Helper()
	c := lab.Cluster(t)
	admin, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	h := &clusterHost{testHost: newHost(t, name, options), cluster: c, admin: admin, node: name}
	h.storeIdentity()
	ca, err := admin.CoreV1().ConfigMaps("openshift-config-managed").Get(t.Context(), "kube-apiserver-client-ca",
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h.write(`C:\k\kubelet-ca.crt`, ca.Data["ca-bundle.crt"])
	h.write(`C:\k\kubelet.conf`, kubeletConfigFile)
	h.write(`C:\k\api-ca.crt`, string(caData(t, c.Config)))
	h.write(`C:\k\kubeconfig`, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+c.Config.Host+`", certificate-authority: 'C:\k\api-ca.crt'}}]
users: [{name: u, user: {client-certificate: 'C:\var\lib\kubelet\pki\kubelet-client-current.pem', client-key: 'C:\var\lib\kubelet\pki\kubelet-client-current.pem'}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`)
	h.configureService("kubelet", `C:\k\kube-log-runner.exe`, `-log-file=C:\var\log\kubelet\kubelet.log`, `C:\k\kubelet.exe`,
		`--config=C:\k\kubelet.conf`, `--kubeconfig=C:\k\kubeconfig`, `--cert-dir=C:\var\lib\kubelet\pki`,
		"--windows-service", "--v=2",
		"--node-labels=node.openshift.io/os_id=Windows", "--node-ip=10.9.0.5",
		"--container-runtime-endpoint=npipe:////./pipe/containerd-containerd")
	h.configureService("hybrid-overlay-node", `C:\k\hybrid-overlay-node.exe`, "--node="+name, `--k8s-kubeconfig=C:\k\kubeconfig`,
		"--windows-service",
		"--logfile", `C:\var\log\hybrid-overlay\hybrid-overlay.log`)
	return h
}

func caData(t *testing.T, config *rest.Config) []byte {
	t.Helper()
	if len(config.CAData) > 0 {
		return config.CAData
	}
	data, err := os.ReadFile(config.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// storeIdentity stores a signed client certificate in client-go's file store of the host, as the agent and the
// operator do.
func (h *clusterHost) storeIdentity() {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + h.node, Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		h.t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		h.t.Fatal(err)
	}
	csrs := h.admin.CertificatesV1().CertificateSigningRequests()
	request, err := csrs.Create(h.t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	approveRequest(h.t, h.admin, request)
	h.pollCondition("the client certificate", func(ctx context.Context) (bool, error) {
		request, err = csrs.Get(ctx, request.Name, metav1.GetOptions{})
		return err == nil && len(request.Status.Certificate) > 0, err
	})
	store, err := certificate.NewFileStoreWithLogger(klog.Logger{}, "kubelet-client", h.pki, h.pki, "", "")
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := store.Update(request.Status.Certificate, keyPEM); err != nil {
		h.t.Fatal(err)
	}
}

func approveRequest(t *testing.T, admin kubernetes.Interface, request *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	csrs := admin.CertificatesV1().CertificateSigningRequests()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		latest, err := csrs.Get(t.Context(), request.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(latest.Status.Conditions) > 0 {
			return nil // The control plane approves the requests of an administrator.
		}
		latest.Status.Conditions = append(latest.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
		})
		_, err = csrs.UpdateApproval(t.Context(), latest.Name, latest, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// approveServing approves the first serving request of the node and returns it.
func (h *clusterHost) approveServing() *certificatesv1.CertificateSigningRequest {
	h.t.Helper()
	var found *certificatesv1.CertificateSigningRequest
	h.pollCondition("a serving certificate request", func(ctx context.Context) (bool, error) {
		list, err := h.admin.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{
			FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName,
		})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if list.Items[i].Spec.Username == "system:node:"+h.node && len(list.Items[i].Status.Conditions) == 0 {
				found = &list.Items[i]
			}
		}
		return found != nil, nil
	})
	approveRequest(h.t, h.admin, found)
	return found
}

func (h *clusterHost) pollCondition(what string, condition func(context.Context) (bool, error)) {
	h.t.Helper()
	if err := h.pollUntil(condition); err != nil {
		h.t.Fatalf("%s: %v\nkubelet's log:\n%s\nhybrid overlay's log:\n%s", what, err,
			h.read(`C:\var\log\kubelet\kubelet.log`), h.read(`C:\var\log\hybrid-overlay\hybrid-overlay.log`))
	}
}

// awaitNode waits until the node exists and the condition is true.
func (h *clusterHost) awaitNode(what string, condition func(*corev1.Node) bool) *corev1.Node {
	h.t.Helper()
	var node *corev1.Node
	h.pollCondition(what, func(ctx context.Context) (bool, error) {
		var err error
		node, err = h.admin.CoreV1().Nodes().Get(ctx, h.node, metav1.GetOptions{})
		return err == nil && condition(node), nil
	})
	return node
}

func (h *clusterHost) annotateSubnet(subnet string) {
	h.t.Helper()
	h.pollCondition("annotate the node", func(ctx context.Context) (bool, error) {
		node, err := h.admin.CoreV1().Nodes().Get(ctx, h.node, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[subnetAnnotation] = subnet
		_, err = h.admin.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err == nil, nil
	})
}

func nodeReady(node *corev1.Node) (corev1.ConditionStatus, string) {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status, c.Message
		}
	}
	return corev1.ConditionUnknown, "no condition"
}

// startReadyNode starts the services until the node is Ready, with HNS networks and pod network.
func (h *clusterHost) startReadyNode(subnet string) *corev1.Node {
	h.t.Helper()
	h.startContainerd()
	h.start("kubelet")
	h.awaitNode("the node registers", func(*corev1.Node) bool { return true })
	h.annotateSubnet(subnet)
	h.start("hybrid-overlay-node")
	h.awaitMachine("the HNS network", func() bool { return h.networkSubnet(overlayNetwork) == subnet })
	h.write(`C:\k\cni\config\cni.conf`,
		`{"cniVersion":"1.0.0","name":"OVNKubernetesHybridOverlayNetwork","type":"win-overlay"}`)
	return h.awaitNode("the node is ready", func(n *corev1.Node) bool {
		status, _ := nodeReady(n)
		return status == corev1.ConditionTrue
	})
}

func (h *clusterHost) networkSubnet(name string) string {
	networks, err := h.Host().Networks.Networks(h.t.Context())
	if err != nil {
		h.t.Error(err)
	}
	for _, n := range networks {
		if strings.EqualFold(n.Name, name) {
			return n.Subnet
		}
	}
	return ""
}
