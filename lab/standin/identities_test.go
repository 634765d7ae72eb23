package standin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"

	"github.com/windows-machine-config/wmco/lab/payload"
)

// ovnRequests returns the certificate requests for the node's overlay identity.
func (h *clusterHost) ovnRequests(ctx context.Context) ([]certificatesv1.CertificateSigningRequest, error) {
	list, err := h.admin.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{
		FieldSelector: "spec.signerName=" + certificatesv1.KubeAPIServerClientSignerName,
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(r certificatesv1.CertificateSigningRequest) bool {
		return r.Spec.Username != "system:node:"+h.node && r.Spec.Username != "system:ovn-node:"+h.node
	}), nil
}

// currentOVNCertificate returns the content of the file with certificate and key behind the link in the store
// of the overlay.
func (h *clusterHost) currentOVNCertificate() string {
	h.t.Helper()
	info, err := h.Machine.Drive().Stat(`C:\k\cni\config\ovnkube-client-current.pem`)
	if err != nil || info.LinkTarget == "" {
		h.t.Fatalf("the certificate in use is not a link: %+v (%v)", info, err)
	}
	if content := h.read(info.LinkTarget); !strings.Contains(content, "PRIVATE KEY") {
		h.t.Errorf("the certificate is kept without its key: %s", content)
	}
	return info.LinkTarget
}

//
func TestHybridOverlay_GetsOwnIdentity(t *testing.T) {
	h := newClusterHost(t, "win-identity", Options{})
	h.configureService("hybrid-overlay-node", `C:\k\hybrid-overlay-node.exe`, "--node="+h.node,
		`--bootstrap-kubeconfig=C:\k\kubeconfig`, `--cert-dir=C:\k\cni\config`,
		"--cert-duration=24h", "--windows-service", "--logfile", `C:\var\log\hybrid-overlay\hybrid-overlay.log`)
	h.startContainerd()
	h.start("kubelet")
	h.awaitNode("the node registers", func(*corev1.Node) bool { return true })
	h.annotateSubnet("10.132.30.0/23")
	h.start("hybrid-overlay-node")
	h.pollCondition("a request", func(ctx context.Context) (bool, error) {
		requests, err := h.ovnRequests(ctx)
		if len(requests) == 0 {
			return false, err
		}
		approveRequest(t, h.admin, &requests[0])
		return true, err
	})
	h.awaitMachine("the HNS network", func() bool { return h.networkSubnet(overlayNetwork) == "10.132.30.0/23" })
	h.awaitNode("the gateway", func(n *corev1.Node) bool { return n.Annotations[gatewayAnnotation] != "" })
	h.currentOVNCertificate()

	h.stop("hybrid-overlay-node")
	if err := h.Host().Networks.DeleteNetwork(t.Context(), overlayNetwork); err != nil {
		t.Fatal(err)
	}
	h.start("hybrid-overlay-node")
	h.awaitMachine("the HNS network after a restart", func() bool { return h.networkSubnet(overlayNetwork) == "10.132.30.0/23" })
	if requests, err := h.ovnRequests(t.Context()); err != nil || len(requests) != 1 {
		t.Errorf("there are %d requests for one certificate (%v)", len(requests), err)
	}

	// The program renews the certificate with the rights that the certificate provides.
	h.stop("hybrid-overlay-node")
	h.grantRights("ovn-nodes", "system:ovn-nodes", rbacv1.PolicyRule{APIGroups: []string{certificatesv1.GroupName},
		Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"}})
	aged, key := h.newAgedCertificate(pkix.Name{CommonName: "system:ovn-node:" + h.node, Organization: []string{"system:ovn-nodes"}})
	former := `C:\k\cni\config\ovnkube-client-2026-01-01-00-00-00.pem`
	h.write(former, string(aged)+"\n"+string(key))
	if err := h.Drive().Symlink(former, `C:\k\cni\config\ovnkube-client-current.pem`); err != nil {
		t.Fatal(err)
	}
	h.start("hybrid-overlay-node")
	h.pollCondition("a request for the next certificate", func(ctx context.Context) (bool, error) {
		requests, err := h.ovnRequests(ctx)
		for i := range requests {
			if requests[i].Spec.Username == "system:ovn-node:"+h.node {
				approveRequest(t, h.admin, &requests[i])
				return true, err
			}
		}
		return false, err
	})
	h.awaitMachine("the next certificate", func() bool {
		return !strings.HasPrefix(h.read(`C:\k\cni\config\ovnkube-client-current.pem`), string(aged))
	})
	if next := h.currentOVNCertificate(); next == former || !strings.HasPrefix(h.read(former), string(aged)) {
		t.Errorf("%s follows %s, which client-go does not delete: %s", next, former, h.read(former))
	}
}

//
func TestCloudNodeManager_InitializesNodeWithOwnRights(t *testing.T) {
	h := newClusterHost(t, "win-cloud", Options{ProviderID: func(name, address string) string {
		return "azure:///" + name + "/" + address
	}, Zone: func(address string) string { return map[string]string{"10.9.0.5": "2"}[address] }})
	e := payload.Executable{Component: "azure-cloud-node-manager", File: "azure-cloud-node-manager.exe",
		Version: "v1.36.5", Size: 8 << 10}
	h.write(`C:\k\azure-cloud-node-manager.exe`, string(e.Content()))
	h.write(`C:\k\cloud.pem`, h.clientCertificate("system:cloud-node-manager:win-cloud", "system:cloud-node-managers"))
	h.write(`C:\k\cloud-kubeconfig`, strings.ReplaceAll(h.read(`C:\k\kubeconfig`),
		`C:\var\lib\kubelet\pki\kubelet-client-current.pem`, `C:\k\cloud.pem`))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.node}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{
		{Key: uninitializedTaint, Effect: corev1.TaintEffectNoSchedule},
		{Key: "os", Value: "Windows", Effect: corev1.TaintEffectNoSchedule},
	}}}
	if _, err := h.admin.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	h.configureService("cloud-node-manager", `C:\k\azure-cloud-node-manager.exe`, "--windows-service", "--node-name="+h.node,
		"--wait-routes=false",
		`--kubeconfig=C:\k\cloud-kubeconfig`)
	h.start("cloud-node-manager")
	initialized := func(n *corev1.Node) bool {
		return !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitializedTaint })
	}
	if initialized(h.awaitNode("the node is there", func(*corev1.Node) bool { return true })) {
		t.Error("it is initialized without rights")
	}
	h.grantRights("cloud-node-managers", "system:cloud-node-managers",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch",
			"update", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}})
	done := h.awaitNode("the node is initialized, and has the taint of Windows alone", func(n *corev1.Node) bool {
		return initialized(n) && len(n.Spec.Taints) == 1
	})
	if done.Spec.ProviderID != "azure:///win-cloud/10.9.0.5" || len(done.Status.Addresses) != 2 {
		t.Errorf("provider ID %s, taints %v, addresses %v", done.Spec.ProviderID, done.Spec.Taints, done.Status.Addresses)
	}
	if got := done.Labels; got[corev1.LabelTopologyRegion] != "eastus" || got[corev1.LabelTopologyZone] != "eastus-2" ||
		got[corev1.LabelInstanceTypeStable] == "" {
		t.Errorf("labels %v", got)
	}
}

// clientCertificate returns a signed certificate with key, in PEM.
func (h *clusterHost) clientCertificate(name, group string) string {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name,
		Organization: []string{group}}}, key)
	if err != nil {
		h.t.Fatal(err)
	}
	csrs := h.admin.CertificatesV1().CertificateSigningRequests()
	request, err := csrs.Create(h.t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	approveRequest(h.t, h.admin, request)
	h.pollCondition("the certificate", func(ctx context.Context) (bool, error) {
		request, err = csrs.Get(ctx, request.Name, metav1.GetOptions{})
		return err == nil && len(request.Status.Certificate) > 0, err
	})
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(request.Status.Certificate) + string(private)
}

// grantRights grants rights to a group.
func (h *clusterHost) grantRights(name, group string, rules ...rbacv1.PolicyRule) {
	h.t.Helper()
	meta := metav1.ObjectMeta{Name: name}
	if _, err := h.admin.RbacV1().ClusterRoles().Create(h.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
	_, err := h.admin.RbacV1().ClusterRoleBindings().Create(h.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}, metav1.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
}
