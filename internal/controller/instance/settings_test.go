package instance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

const trialSubnet = "10.132.0.0/24"

// runProgram simulates the programs of a working node, by the command line of the process.
func runProgram(ctx context.Context, p *fake.Process) int {
	line := strings.ToLower(p.Path + " " + strings.Join(p.Args, " "))
	var err error
	switch {
	case strings.Contains(line, `\containerd.exe`):
		err = p.ServeRuntime("npipe://./pipe/containerd-containerd", func() host.RuntimeStatus {
			return host.RuntimeStatus{Name: "containerd", Version: "v2", Ready: true}
		})
	case strings.Contains(line, `\kubelet.exe`):
		err = p.ServeLocal(10248, http.HandlerFunc(serveOK))
	case strings.Contains(line, `\kube-proxy.exe`):
		err = p.ServeLocal(10256, http.HandlerFunc(serveOK))
	case strings.Contains(line, `\windows_exporter.exe`):
		err = p.ServeLocal(9182, http.HandlerFunc(serveOK))
	case strings.Contains(line, `\hybrid-overlay-node.exe`):
		_ = p.CreateNetwork(host.HNSNetwork{Name: "OVNKubernetesHybridOverlayNetwork", Type: "Overlay", Subnet: trialSubnet}) // the network may exist
	}
	if err != nil {
		return 1
	}
	<-ctx.Done()
	return 0
}

func serveOK(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

// reconcileUntil advances the clock of the host and reconciles until the instance matches.
func (x *trial) reconcileUntil(what string, isDesired func(*v1alpha1.WindowsInstance) bool) *v1alpha1.WindowsInstance {
	x.t.Helper()
	var instance *v1alpha1.WindowsInstance
	deadline := time.Now().Add(wallClockTimeout)
	for n := 0; n < 60 || x.ListWaitTimeout == 0 && time.Now().Before(deadline); n++ {
		var after time.Duration
		if instance, after = x.reconcile(); isDesired(instance) {
			return instance
		}
		if x.ListWaitTimeout == 0 { // a reconcile does not wait for a list
			time.Sleep(5 * time.Millisecond)
			after = time.Second
		}
		x.clock.Step(min(after, time.Minute))
	}
	x.t.Fatalf("%s does not come: %s (%s), %v", what, instance.Status.Summary, instance.Status.NextAction,
		instance.Status.Conditions)
	return nil
}

func hasSummary(reason string) func(*v1alpha1.WindowsInstance) bool {
	return func(i *v1alpha1.WindowsInstance) bool { return i.Status.Summary == reason }
}

// nodeInService returns a trial with a Ready node that the operator has configured through the agent.
func nodeInService(t *testing.T, platform string, change ...func(*fake.Options)) (*trial, *agentHost, *trialGate) {
	t.Helper()
	x, h, gate := hostToJoin(t, platform, change...)
	x.joinNode()
	gate.requests, gate.held, gate.granted, gate.released = nil, nil, nil, nil
	x.popEvents()
	return x, h, gate
}

// hostToJoin returns a trial with a newly listed host.
func hostToJoin(t *testing.T, platform string, change ...func(*fake.Options)) (*trial, *agentHost, *trialGate) {
	t.Helper()
	x := newTrial(t, listedInstance())
	x.facts.Platform = platform
	gate := openGate()
	x.Gate = gate
	x.enableSigning(month)
	h := x.withAgent(func(o *fake.Options) {
		o.Name, o.Features = machine, map[string]host.FeatureState{nodespec.FeatureContainers: host.FeatureEnabled}
		idling := o.Programs
		o.Programs = func(content []byte) (fake.Program, error) {
			if string(content) != "wicd.exe" {
				return runProgram, nil
			}
			return idling(content)
		}
		for _, each := range change {
			each(o)
		}
	})
	return x, h, gate
}

// registerNode runs the operator until the kubelet of the host registers the Node, with optional taints.
func (x *trial) registerNode(more ...corev1.Taint) {
	x.t.Helper()
	x.reconcileUntil("the kubelet's certificate", hasSummary(v1alpha1.ReasonNodeNotRegistered))
	if err := x.Client.Create(x.t.Context(), x.newRegisteredNode(more...)); err != nil {
		x.t.Fatal(err)
	}
}

// newRegisteredNode returns the Node as registered by the kubelet, with its pod subnet.
func (x *trial) newRegisteredNode(more ...corev1.Taint) *corev1.Node {
	node := readyNode("")
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(x.clock.Now().Add(x.ahead))
	node.Annotations = map[string]string{v1alpha1.AnnotationPodSubnet: trialSubnet}
	node.Spec.Taints = append([]corev1.Taint{windowsTaint, {Key: v1alpha1.TaintNotReady,
		Effect: corev1.TaintEffectNoSchedule}}, more...)
	return node
}

// joinNode runs the operator until the host is a Ready node.
func (x *trial) joinNode() *v1alpha1.WindowsInstance {
	x.t.Helper()
	x.registerNode()
	return x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
}

// selfSigned returns the certificate of an authority in PEM.
func selfSigned(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: noon,
		NotAfter: noon.Add(10 * 12 * month), IsCA: true, BasicConstraintsValid: true,
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data}))
}

// environmentOf returns the environment of a service on the host.
func (h *agentHost) environmentOf(service string) []string {
	h.t.Helper()
	found, ok := h.machine.Service(service)
	if !ok {
		h.t.Fatalf("there is no service %s", service)
	}
	return found.Environment
}

// hasProxy reports whether a service on the host has the cluster's proxy.
func (h *agentHost) hasProxy(service string) bool {
	h.t.Helper()
	return slices.ContainsFunc(h.environmentOf(service), func(variable string) bool {
		return strings.HasPrefix(variable, "HTTP_PROXY=http")
	})
}

func TestSettings_AuthorityAppliedWithoutSlot(t *testing.T) {
	x, h, gate := nodeInService(t, "None")
	gate.refuseAll(v1alpha1.ReasonOutsideMaintenanceWindow)
	authority := selfSigned(t, "Example CA")
	roots := len(h.machine.TrustedRoots())
	x.facts.TrustedCAs = []string{authority}
	instance := x.reconcileUntil("the change", func(i *v1alpha1.WindowsInstance) bool {
		return i.Status.Summary == v1alpha1.ReasonReady && len(h.machine.TrustedRoots()) == roots+1
	})
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if len(gate.requests) > 0 || x.getNode().Spec.Unschedulable || slices.ContainsFunc(x.popEvents(), func(e string) bool {
		return strings.Contains(e, "Drain")
	}) {
		t.Errorf("the gate was asked: %v", gate.requests)
	}
	x.facts.TrustedCAs = nil
	x.reconcileUntil("the change back", func(i *v1alpha1.WindowsInstance) bool {
		return i.Status.Summary == v1alpha1.ReasonReady && len(h.machine.TrustedRoots()) == roots
	})
	if len(gate.requests) > 0 {
		t.Errorf("the gate was asked: %v", gate.requests)
	}
}

func TestSettings_ProxyWaitsForSlotAndDrain(t *testing.T) {
	x, h, gate := nodeInService(t, "None")
	const secret = "proxy-canary"
	gate.refuseAll(v1alpha1.ReasonMaxUnavailableReached)
	x.facts.Proxy = nodespec.Proxy{HTTP: nodespec.Secret("http://user:" + secret + "@proxy.example.com:3128"),
		NoProxy: ".cluster.local"}
	instance, _ := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonMaxUnavailableReached)
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if got := h.hasProxy("containerd"); got || x.getNode().Spec.Unschedulable {
		t.Fatalf("it did not wait: has the proxy %t, unschedulable %t", got, x.getNode().Spec.Unschedulable)
	}
	gate.closed = false
	instance = x.reconcileUntil("the change", hasSummary(v1alpha1.ReasonReady))
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if got := strings.Join(h.environmentOf("containerd"), " "); !strings.Contains(got, secret) ||
		!strings.Contains(got, "NO_PROXY=") {
		t.Error("containerd has no proxy")
	}
	events := x.popEvents()
	if !slices.ContainsFunc(events, func(e string) bool {
		return strings.Contains(e, "Drain")
	}) || !slices.Equal(gate.released, []string{machine}) {
		t.Errorf("the node was not drained, or keeps its turn: %v, %q", gate.released, events)
	}
	if x.getNode().Spec.Unschedulable {
		t.Error("the node takes no pods any more")
	}
	if slices.ContainsFunc(h.commandLines(), func(command string) bool { return strings.Contains(command, secret) }) {
		t.Error("a command line holds the proxy's password")
	}
	// No visible text contains the password.
	encoded, err := json.Marshal(x.getInstance())
	if err != nil || strings.Contains(string(encoded)+strings.Join(events, "\n"), secret) {
		t.Errorf("the status or an event holds the proxy's password (%v)", err)
	}
}

// SFTP creates directories with the default permissions of Windows, which let all users read.
func TestJoin_FirstSpecSentToRestrictedDirectory(t *testing.T) {
	_, h, _ := nodeInService(t, "None")
	queried, sent := -1, -1
	for i, entry := range h.machine.Journal().Entries(func(fake.Entry) bool { return true }) {
		switch {
		case queried < 0 && entry.Kind == winhost.KindCommand && strings.Contains(entry.Detail, " facts"):
			queried = i
		case sent < 0 && strings.Contains(strings.ToLower(entry.Detail), `inbox\spec-`):
			sent = i
		}
	}
	if queried < 0 || sent < queried {
		t.Errorf("the spec was entry %d, the facts entry %d", sent, queried)
	}
	for _, dir := range []string{nodespec.AgentRoot, nodespec.InboxRoot} {
		if info, err := h.machine.Drive().Stat(dir); err != nil || info.Access != host.AccessAdministrators {
			t.Errorf("%s may be used by %s (%v)", dir, info.Access, err)
		}
	}
}

func TestJoin_AllCertificatesIssuedTogether(t *testing.T) {
	_, plain, _ := nodeInService(t, "None")
	x, h, _ := nodeInService(t, "Azure")
	// The clock of the trial skips the limit of idle connections. Whether a connection ends before its next use
	// is a race.
	if h.countLogins() > 2 || len(h.agentCommands()) != len(plain.agentCommands()) || len(h.agentCommands()) > 8 {
		t.Errorf("%d connections, %d processes (%q); without another identity %d processes", h.countLogins(), len(h.agentCommands()),
			h.agentCommands(), len(plain.agentCommands()))
	}
	requests, err := x.clientset.CertificatesV1().CertificateSigningRequests().List(t.Context(),
		metav1.ListOptions{LabelSelector: labelInstance + "=" + machine})
	if err != nil {
		t.Fatal(err)
	}
	signers := map[string]bool{}
	for _, request := range requests.Items {
		signers[request.Spec.SignerName] = true
	}
	if len(requests.Items) != 2 || !signers[certificatesv1.KubeAPIServerClientSignerName] ||
		!signers[certificatesv1.KubeAPIServerClientKubeletSignerName] {
		t.Errorf("%d requests, to %v", len(requests.Items), signers)
	}
	var renewed []string
	for _, certificate := range x.getInstance().Status.Certificates {
		if certificate.RenewAt.After(x.clock.Now()) {
			renewed = append(renewed, certificate.Name)
		}
	}
	if !slices.Equal(renewed, []string{"cloud-node-manager"}) {
		t.Errorf("to be renewed are %q", renewed)
	}
	if service, exists := h.machine.Service("cloud-node-manager"); !exists || service.State != host.ServiceRunning {
		t.Errorf("the service: %t, %s", exists, service.State)
	}
	// The certificate requests of a node are deleted with the node.
	if err := x.newDependencies().signer.DeleteRequests(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if requests, err = x.clientset.CertificatesV1().CertificateSigningRequests().List(t.Context(),
		metav1.ListOptions{}); err != nil || len(requests.Items) > 0 {
		t.Errorf("%d requests are left (%v)", len(requests.Items), err)
	}
}
