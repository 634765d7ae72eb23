package fakeopenshift

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift, BootTimeout: 5 * time.Minute})

func TestMain(m *testing.M) { os.Exit(max(lab.Main(m), unsigned.Stop())) }

type fixture struct {
	t      *testing.T
	config *rest.Config
	admin  kubernetes.Interface
}

func start(t *testing.T, o Options) fixture {
	t.Helper()
	c := lab.Cluster(t)
	admin, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c.Config, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return fixture{t, c.Config, admin}
}

func (f fixture) createNode(name, system string, taints ...corev1.Taint) {
	f.t.Helper()
	f.createNodeAt("", name, system, taints...)
}

// createNodeAt creates a node with an internal address.
func (f fixture) createNodeAt(address, name, system string, taints ...corev1.Taint) {
	f.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelOSStable: system}}, Spec: corev1.NodeSpec{Taints: taints}}
	if address != "" {
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	}
	if _, err := f.admin.CoreV1().Nodes().Create(f.t.Context(), node, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := f.admin.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			f.t.Error(err)
		}
	})
}

func (f fixture) awaitCondition(what string, condition func(context.Context) (bool, error)) {
	f.t.Helper()
	if err := wait.PollUntilContextTimeout(f.t.Context(), 20*time.Millisecond, 3*time.Minute, true,
		condition); err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
}

func (f fixture) awaitNode(what, name string, condition func(*corev1.Node) bool) *corev1.Node {
	f.t.Helper()
	var node *corev1.Node
	f.awaitCondition(what, func(ctx context.Context) (bool, error) {
		var err error
		node, err = f.admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err == nil && condition(node), err
	})
	return node
}

// requestCertificate requests a certificate as a user.
func (f fixture) requestCertificate(user, signer string, subject pkix.Name, ip string, usage certificatesv1.KeyUsage) string {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: subject}
	if ip != "" {
		template.IPAddresses = []net.IP{net.ParseIP(ip)}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		f.t.Fatal(err)
	}
	config := rest.CopyConfig(f.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:nodes", "system:authenticated"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		f.t.Fatal(err)
	}
	created, err := client.CertificatesV1().CertificateSigningRequests().Create(f.t.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
				SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
			},
		}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return created.Name
}

func (f fixture) requestServing(node, ip string) string {
	return f.requestCertificate("system:node:"+node, certificatesv1.KubeletServingSignerName,
		pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, ip,
		certificatesv1.UsageServerAuth)
}

func (f fixture) isRequestApproved(name string) (bool, error) {
	request, err := f.admin.CertificatesV1().CertificateSigningRequests().Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	}), nil
}

//
func TestHybridOverlay_WindowsNodesGetSubnets(t *testing.T) {
	f := start(t, Options{})
	hasSubnet := func(n *corev1.Node) bool { return n.Annotations[subnetAnnotation] != "" }
	f.createNode("linux-a", "linux")
	names := []string{"win-a", "win-b", "win-c", "win-d"}
	for _, name := range names {
		f.createNode(name, "windows")
	}
	subnets := map[string]bool{}
	for _, name := range names {
		subnets[f.awaitNode("a subnet", name, hasSubnet).Annotations[subnetAnnotation]] = true
	}
	for _, want := range []string{"10.132.0.0/23", "10.132.2.0/23", "10.132.4.0/23", "10.132.6.0/23"} {
		if !subnets[want] {
			t.Errorf("nobody has %s: %v", want, subnets)
		}
	}
	if hasSubnet(f.awaitNode("the Linux node", "linux-a", func(*corev1.Node) bool { return true })) {
		t.Error("a Linux node has a subnet of the hybrid overlay")
	}
}

func TestMachineApprover(t *testing.T) {
	f := start(t, Options{})
	f.createNode("win-machine", "windows")
	f.createNode("win-byoh", "windows")
	f.createMachine("win-machine", "10.9.1.1", "", "win-machine")
	f.createNodeAt("10.9.1.4", "ec2amaz-2", "windows")
	f.createMachine("lab-win-us-east-1a-bcdfg", "10.9.1.4", "", "")

	good, foreign, byoh := f.requestServing("win-machine", "10.9.1.1"), f.requestServing("win-machine", "10.9.1.2"),
		f.requestServing("win-byoh", "10.9.1.3")
	f.awaitCondition("the machine's request is approved", func(context.Context) (bool, error) { return f.isRequestApproved(good) })
	unlinked := f.requestServing("ec2amaz-2", "10.9.1.4")
	f.awaitCondition("the request of a machine that is known by its address is approved", func(context.Context) (bool, error) {
		return f.isRequestApproved(unlinked)
	})
	for name, request := range map[string]string{"another address": foreign, "a node without Machine": byoh} {
		if approved, err := f.isRequestApproved(request); approved || err != nil {
			t.Errorf("%s: approved %v, error %v", name, approved, err)
		}
	}
}

// createMachine creates a Machine with an address, and optionally with a provider ID and a node.
func (f fixture) createMachine(name, address, providerID, node string) {
	f.t.Helper()
	client, err := dynamic.NewForConfig(f.config)
	if err != nil {
		f.t.Fatal(err)
	}
	machines := client.Resource(machineResource).Namespace(machineNamespace)
	spec := map[string]any{}
	if providerID != "" {
		spec["providerID"] = providerID
	}
	created, err := machines.Create(f.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "metadata": map[string]any{"name": name},
		"spec": spec,
	}}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	status := map[string]any{"addresses": []any{map[string]any{"type": "InternalIP", "address": address}}}
	if node != "" {
		status["nodeRef"] = map[string]any{"kind": "Node", "name": node}
	}
	created.Object["status"] = status
	if _, err := machines.UpdateStatus(f.t.Context(), created, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func TestOVNIdentityApprover(t *testing.T) {
	f := start(t, Options{})
	request := func(user, node string) string {
		return f.requestCertificate(user, certificatesv1.KubeAPIServerClientSignerName,
			pkix.Name{CommonName: "system:ovn-node:" + node, Organization: []string{"system:ovn-nodes"}}, "",
			certificatesv1.UsageClientAuth)
	}
	own, foreign := request("system:node:win-a", "win-a"), request("system:node:win-a", "win-b")
	f.awaitCondition("a node's own identity is approved", func(context.Context) (bool, error) { return f.isRequestApproved(own) })
	if approved, err := f.isRequestApproved(foreign); approved || err != nil {
		t.Errorf("another node's identity: approved %v, error %v", approved, err)
	}
}

func TestCloudController(t *testing.T) {
	taint := corev1.Taint{Key: uninitializedTaint, Value: "true", Effect: corev1.TaintEffectNoSchedule}
	initialized := func(n *corev1.Node) bool {
		return !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitializedTaint })
	}
	t.Run("on a cloud a new node gets its provider ID and loses its taint", func(t *testing.T) {
		f := start(t, Options{Platform: "GCP"})
		f.createNode("win-gcp", "windows", taint)
		node := f.awaitNode("it is initialized", "win-gcp", initialized)
		if node.Spec.ProviderID == "" {
			t.Error("it has no provider ID")
		}
	})
	t.Run("on Azure a Windows node is left to its own cloud-node-manager", func(t *testing.T) {
		f := start(t, Options{Platform: "Azure"})
		f.createNode("win-azure", "windows", taint)
		node := f.awaitNode("the overlay has seen it", "win-azure", func(n *corev1.Node) bool {
			return n.Annotations[subnetAnnotation] != ""
		})
		if initialized(node) {
			t.Error("the taint is gone")
		}
	})
	t.Run("a node with a Machine's address gets the Machine's provider ID, whatever its name", func(t *testing.T) {
		f := start(t, Options{Platform: "AWS"})
		f.createMachine("lab-win-us-east-1b-x7k2p", "10.9.2.1", "aws:///us-east-1b/i-0123456789abcdef0", "")
		f.createNodeAt("10.9.2.1", "ec2amaz-1", "windows", taint)
		node := f.awaitNode("it is initialized", "ec2amaz-1", initialized)
		if node.Spec.ProviderID != "aws:///us-east-1b/i-0123456789abcdef0" {
			t.Errorf("provider ID %s", node.Spec.ProviderID)
		}
		if region, zone := node.Labels[corev1.LabelTopologyRegion],
			node.Labels[corev1.LabelTopologyZone]; region != "us-east-1" || zone != "us-east-1b" ||
			node.Labels[corev1.LabelInstanceTypeStable] == "" {
			t.Errorf("region %q, zone %q, labels %v", region, zone, node.Labels)
		}
	})
	t.Run("a cloud controller that does not work yet leaves the taint", func(t *testing.T) {
		works := make(chan struct{})
		f := start(t, Options{Platform: "VSphere", CloudWorks: works})
		f.createNode("win-late", "windows", taint)
		node := f.awaitNode("the overlay has seen it", "win-late", func(n *corev1.Node) bool {
			return n.Annotations[subnetAnnotation] != ""
		})
		if initialized(node) || node.Labels[corev1.LabelInstanceTypeStable] != "" {
			t.Errorf("it is initialized: taints %v, labels %v", node.Spec.Taints, node.Labels)
		}
		close(works)
		node = f.awaitNode("it is initialized", "win-late", initialized)
		if node.Labels[corev1.LabelInstanceTypeStable] == "" || node.Labels[corev1.LabelTopologyZone] != "" {
			t.Errorf("labels %v", node.Labels)
		}
	})
	t.Run("on vSphere a node is found by the full DNS name of its guest only, letter by letter", func(t *testing.T) {
		f := start(t, Options{Platform: "VSphere", GuestNames: func() []string {
			return []string{"win-1.corp.example.com", "WIN-2", "win-3"}
		}})
		for _, name := range []string{"win-1", "win-1.corp.example.com", "win-2", "win-3"} {
			f.createNode(name, "windows", taint)
		}
		for _, name := range []string{"win-1.corp.example.com", "win-3"} {
			f.awaitNode("it is initialized", name, initialized)
		}
		for _, name := range []string{"win-1", "win-2"} {
			node := f.awaitNode("the overlay has seen it", name, func(n *corev1.Node) bool {
				return n.Annotations[subnetAnnotation] != ""
			})
			if initialized(node) {
				t.Errorf("%s is initialized", name)
			}
		}
	})
	t.Run("without a cloud nothing happens", func(t *testing.T) {
		f := start(t, Options{Platform: "None"})
		f.createNode("win-none", "windows", taint)
		node := f.awaitNode("the overlay has seen it", "win-none", func(n *corev1.Node) bool {
			return n.Annotations[subnetAnnotation] != ""
		})
		if initialized(node) {
			t.Error("the taint is gone")
		}
	})
}

func TestLinuxNodes(t *testing.T) {
	f := start(t, Options{ControlPlaneNodes: 3, WorkerNodes: 2})
	f.awaitCondition("they have leases", func(ctx context.Context) (bool, error) {
		list, err := f.admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) >= 5, err
	})
	f.awaitNode("a control plane node", "master-0", func(n *corev1.Node) bool {
		_, ok := n.Labels["node-role.kubernetes.io/control-plane"]
		return ok && n.Status.Addresses[0].Address == "10.0.0.10"
	})
}

func TestProviderID(t *testing.T) {
	for platform, length := range map[string]int{"AWS": len("aws:///us-east-1a/i-0123456789abcdef0"),
		"VSphere": len("vsphere://") + 36, "Nutanix": len("nutanix://") + 36} {
		if got := ProviderID(platform, "win"); len(got) != length {
			t.Errorf("%s: %s", platform, got)
		}
	}
}
