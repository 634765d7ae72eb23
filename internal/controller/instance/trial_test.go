package instance

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// wallClockTimeout is the timeout of waits that do not depend on the clock of the trial. With the race detector and
// parallel tests, hundreds of handshakes take minutes.
const wallClockTimeout = 10 * time.Minute

const (
	operatorNamespace = "wmco"
	machine           = "winworker-x2k4f"
)

// trial is a Reconciler with a fake API server and one host.
type trial struct {
	*Reconciler
	t           *testing.T
	clock       *clocktesting.FakeClock
	recorder    *events.FakeRecorder
	clientset   *kubefake.Clientset
	private     []byte
	key         sshkey.Key
	host        *sshHost
	facts       *nodespec.Cluster
	Hosts       *remote.Pool
	waits       atomic.Bool // for a job
	reconciling sync.Mutex
	// limits and dialerClock belong to connections.
	limits      remote.Limits
	dialerClock clock.WithTicker
	dialed      atomic.Int64
	// ahead is the offset of the clock of the host's kubelet.
	ahead time.Duration
	// server replaces host as the target of connections, if set.
	server func(context.Context) (net.Conn, error)
}

func (x *trial) getSession(instance *v1alpha1.WindowsInstance) *scope.Session {
	return x.sessions.Get(instance.Name, instance.UID)
}

// newScope returns the scope of a new reconcile of an instance.
func (x *trial) newScope(instance *v1alpha1.WindowsInstance) *scope.Scope {
	return scope.New(instance, x.getSession(instance), x.Jobs.HostFor(instance), x.clock)
}

// newTrial returns a trial with the objects, a supported cluster, and a Secret with a key that the host accepts.
func newTrial(t *testing.T, objects ...client.Object) *trial {
	t.Helper()
	private, key := newPrivateKey(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		machinev1beta1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	x := &trial{
		t: t, clock: clocktesting.NewFakeClock(noon), recorder: events.NewFakeRecorder(100),
		clientset: kubefake.NewClientset(), private: private, key: key,
		host: newSSHHost(t, key.AuthorizedKey()), facts: supportedCluster(), limits: onABusyMachine(),
	}
	objects = append(objects, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: sshkeysecret.SecretName},
		Data:       map[string][]byte{sshkeysecret.SecretKey: private},
	})
	api := withIndexes(fake.NewClientBuilder().WithScheme(scheme)).WithStatusSubresource(&v1alpha1.WindowsInstance{}).WithObjects(objects...).Build()
	x.Reconciler = &Reconciler{
		Client: api, Live: api, Clientset: x.clientset, Events: x.recorder, Clock: x.clock, Namespace: operatorNamespace,
		Version: "1.2.3", Line: support.CurrentLine(),
		Cluster: x, Payload: completePayload(t), Dial: x.dialServer, ListWaitTimeout: time.Minute,
		Jitter: func() float64 { return 0 }, Gate: openGate(),
	}
	x.restartOperator()
	return x
}

// withIndexes adds the indexes of the operator's cache to a fake API server.
func withIndexes(api *fake.ClientBuilder) *fake.ClientBuilder {
	for _, index := range index.Indexes() {
		api = api.WithIndex(index.Object, index.Field, index.Values)
	}
	return api
}

// onABusyMachine returns limits of the real clock that a loaded machine does not exceed. A session that ends too
// late closes the connection, and tests count connections.
func onABusyMachine() remote.Limits {
	return remote.Limits{DialTimeout: time.Minute, HandshakeTimeout: time.Minute, ExecStartTimeout: time.Minute, EndTimeout: time.Minute}
}

// Current makes the trial a ClusterSource.
func (x *trial) Current() (nodespec.Cluster, error) { return *x.facts, nil }

// countDials returns the number of connections to the host.
func (x *trial) countDials() int { return int(x.dialed.Load()) }

func (x *trial) dialServer(ctx context.Context, network, address string) (net.Conn, error) {
	x.dialed.Add(1)
	connect := x.server
	if connect == nil {
		connect = func(ctx context.Context) (net.Conn, error) { return x.host.dialHost(ctx, network) }
	}
	connection, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	return withRemoteAddress(connection, address), nil
}

// reachedConn is a local connection with the remote address of another machine.
type reachedConn struct {
	net.Conn
	end net.Addr
}

func (c reachedConn) RemoteAddr() net.Addr { return c.end }

// withRemoteAddress sets the dialed address as the remote address of a connection. Names resolve to the address of the
// host.
func withRemoteAddress(connection net.Conn, address string) net.Conn {
	end, err := netip.ParseAddrPort(address)
	if err != nil {
		end = netip.MustParseAddrPort("10.0.128.7:22")
	}
	return reachedConn{connection, net.TCPAddrFromAddrPort(end)}
}

// restartOperator drops all in-memory state, and lets jobs run until the end of the test.
func (x *trial) restartOperator() { x.startLeading(x.clock) }

// startLeading is restartOperator with a clock for the jobs. The returned function ends the leadership, and the channel
// is closed when all jobs have then ended.
func (x *trial) startLeading(jobsClock clock.WithTicker) (end func(), ended <-chan struct{}) {
	if x.Hosts != nil {
		x.Hosts.CloseAll()
	}
	hosts := remote.NewPool(&remote.Dialer{Dial: x.dialServer, Limits: x.limits, Clock: x.dialerClock})
	x.Hosts, x.sessions, x.written = hosts, scope.Sessions{}, nodes.WrittenNodes{}
	x.Jobs = hostjobs.NewRunner(hosts, x.Payload, jobsClock)
	x.Jobs.OnEnd(x.showProgress)
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	jobs := x.Jobs
	go func() {
		defer close(done)
		_ = jobs.Start(ctx)
	}()
	<-jobs.Started()
	x.t.Cleanup(func() {
		end()
		hosts.CloseAll()
		<-done
	})
	return end, done
}

// Reconcile reconciles an instance, but not while its progress is written, because the queue never has two
// concurrent reconciles of one instance.
func (x *trial) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	x.reconciling.Lock()
	defer x.reconciling.Unlock()
	return x.Reconciler.Reconcile(ctx, request)
}

// showProgress reconciles an instance during its job, if the trial waits for the job.
func (x *trial) showProgress(name types.NamespacedName) {
	if !x.waits.Load() {
		return
	}
	x.reconciling.Lock()
	defer x.reconciling.Unlock()
	ctx := context.Background()
	instance, session, err := x.readInstance(ctx, name)
	if err != nil {
		return
	}
	s := scope.New(instance, session, x.Jobs.HostFor(instance), x.clock)
	running := s.Host.RunningJob()
	if running == nil { // the next reconcile of the trial follows the job
		return
	}
	if _, err := x.reconcileDuringJob(ctx, x.newDependencies(), s, running); err != nil {
		x.t.Log(err) // the queue would retry
	}
}

// maxReconciles is the maximum number of reconciles until an instance is stable.
const maxReconciles = 60

// reconcile reconciles the instance until no job runs or was started. It returns the instance, or nil after the
// deletion, and the delay before the next reconcile.
func (x *trial) reconcile() (*v1alpha1.WindowsInstance, time.Duration) {
	x.t.Helper()
	key := client.ObjectKey{Namespace: operatorNamespace, Name: machine}
	result := x.reconcileAll(key)
	instance := &v1alpha1.WindowsInstance{}
	if err := x.Client.Get(x.t.Context(), key, instance); err != nil {
		return nil, result.RequeueAfter
	}
	return instance, result.RequeueAfter
}

// reconcileAll reconciles an instance until no job runs or was started.
func (x *trial) reconcileAll(key client.ObjectKey) (result ctrl.Result) {
	x.t.Helper()
	for range maxReconciles {
		start, busy := x.Jobs.CountStarted(), x.Jobs.CountRunning() > 0
		result, err := x.Reconcile(x.t.Context(), ctrl.Request{NamespacedName: key})
		if err != nil {
			x.t.Fatal(err)
		}
		if !busy && x.Jobs.CountStarted() == start && x.Jobs.CountRunning() == 0 && result.RequeueAfter != minRequeueDelay && result.RequeueAfter != conflictDelay {
			return result
		}
		x.awaitJobs()
	}
	x.t.Fatal("the work on the host does not come to an end")
	return ctrl.Result{}
}

// awaitJobs waits until no job runs.
func (x *trial) awaitJobs() {
	x.waits.Store(true)
	defer x.waits.Store(false)
	for x.Jobs.CountRunning() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// runPhase runs a phase with the requested jobs, like a reconcile, and returns its result.
func (x *trial) runPhase(s *scope.Scope, run phaseFunc) *result.Result {
	x.t.Helper()
	for range maxReconciles {
		o := run(x.t.Context(), s)
		if o == nil || o.Outcome != result.Working && o.Outcome != result.Continue {
			return o
		}
		if _, err := x.newDependencies().status.Write(x.t.Context(), s); err != nil && !apierrors.IsConflict(err) {
			x.t.Fatal(err)
		} else if err != nil {
			return result.FromAPIError(o.Condition, "write the status", err)
		}
		if !s.Host.HasRequestedJob() {
			continue
		}
		x.Jobs.Commit(x.t.Context(), s.Instance, s.Host)
		for x.Jobs.CountRunning() > 0 {
			time.Sleep(time.Millisecond)
		}
		s.Host = x.Jobs.HostFor(s.Instance)
	}
	x.t.Fatal("the phase does not come to an end")
	return nil
}

// changeSpec changes the instance's spec, as a source does.
func (x *trial) changeSpec(instance *v1alpha1.WindowsInstance, change func(*v1alpha1.WindowsInstance)) {
	x.t.Helper()
	change(instance)
	instance.Generation++
	if err := x.Client.Update(x.t.Context(), instance); err != nil {
		x.t.Fatal(err)
	}
}

// popEvents returns the events about the instance since the last call, without the legacy events, which have a
// separate test.
func (x *trial) popEvents() []string {
	var recorded []string
	for len(x.recorder.Events) > 0 {
		if e := <-x.recorder.Events; !strings.HasPrefix(e, "Warning InstanceSetup") && !strings.HasPrefix(e, "Warning MachineSetup") {
			recorded = append(recorded, e)
		}
	}
	return recorded
}

// previousKey returns the initial key of the trial in its file format.
func (x *trial) previousKey() []byte { return x.private }

func (x *trial) getNode() *corev1.Node {
	x.t.Helper()
	node := &corev1.Node{}
	if err := x.Client.Get(x.t.Context(), client.ObjectKey{Name: machine}, node); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		x.t.Fatal(err)
	}
	return node
}

// expectCondition compares a condition of the instance.
func expectCondition(t *testing.T, instance *v1alpha1.WindowsInstance, conditionType string, status metav1.ConditionStatus,
	reason string) metav1.Condition {
	t.Helper()
	condition := meta.FindStatusCondition(instance.Status.Conditions, conditionType)
	if condition == nil {
		t.Fatalf("there is no condition %s", conditionType)
	}
	if condition.Status != status || condition.Reason != reason {
		t.Errorf("%s is %s for %s (%s), want %s for %s", conditionType, condition.Status, condition.Reason,
			condition.Message, status, reason)
	}
	return *condition
}

// machineInstance returns the instance of a newly created Machine.
func machineInstance() *v1alpha1.WindowsInstance {
	return &v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: machine, UID: "instance-uid", Generation: 1,
			CreationTimestamp: metav1.NewTime(noon)},
		Spec: v1alpha1.WindowsInstanceSpec{
			Address: "10.0.128.7", Username: "Administrator", DesiredState: v1alpha1.DesiredStateNode,
			Source: v1alpha1.Source{Machine: &v1alpha1.MachineReference{Namespace: v1alpha1.MachineNamespace, Name: machine,
				UID: "machine-uid"}},
		},
	}
}

// asNode creates the instance with the status of a Ready node and the key, and its Node.
func (x *trial) asNode(instance *v1alpha1.WindowsInstance, keyHash string) {
	x.t.Helper()
	pinned := x.host.hostKey.PublicKey()
	status := &instance.Status
	status.Host = &v1alpha1.HostStatus{Name: machine, Addresses: []string{"10.0.128.7"}}
	status.NodeRef = &v1alpha1.NodeReference{Name: machine, UID: "node-uid", Confirmed: true}
	status.HostKey = &v1alpha1.HostKey{Type: pinned.Type(), Key: encodeKey(pinned),
		Fingerprint: ssh.FingerprintSHA256(pinned)}
	status.PublicKeyHash = keyHash
	for _, condition := range scope.Conditions {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded, Message: "It was so.",
			LastTransitionTime: metav1.NewTime(noon),
		})
	}
	status.Readiness = &v1alpha1.Readiness{Ready: true, Since: metav1.NewTime(noon)}
	status.Summary = v1alpha1.ReasonReady
	s := x.newScope(instance)
	s.Cluster = *x.facts
	spec, err := x.newDependencies().specs.Build(s, nodeWithSubnet("10.132.0.0/24"))
	if err != nil {
		x.t.Fatal(err)
	}
	status.SpecDigest = spec.Digest()
	node := readyNode(keyHash)
	node.Annotations[v1alpha1.AnnotationHostKey] = status.HostKey.Key
	node.Annotations[v1alpha1.AnnotationHostKeyType] = status.HostKey.Type
	if instance.Spec.Source.ConfigMapKey != "" {
		node.Labels[v1alpha1.LabelWorker], node.Labels[v1alpha1.LabelBYOH] = "", "true"
	}
	if err := x.Client.Create(x.t.Context(), node); err != nil {
		x.t.Fatal(err)
	}
	stored := instance.DeepCopy()
	if err := x.Client.Create(x.t.Context(), stored); err != nil {
		x.t.Fatal(err)
	}
	stored.Status = instance.Status
	if err := x.Client.Status().Update(x.t.Context(), stored); err != nil {
		x.t.Fatal(err)
	}
}

func readyNode(keyHash string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: machine, UID: "node-uid",
			Labels: map[string]string{corev1.LabelOSStable: "windows", v1alpha1.LabelOSID: "Windows"},
			Annotations: map[string]string{
				v1alpha1.AnnotationInstance: machine, v1alpha1.AnnotationPubKeyHash: keyHash, v1alpha1.AnnotationVersion: "1.2.3",
				v1alpha1.AnnotationPodSubnet: "10.132.0.0/24",
			},
		},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{windowsTaint}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// windowsTaint is the taint of every Windows node.
var windowsTaint = corev1.Taint{Key: v1alpha1.TaintWindows, Value: "Windows", Effect: corev1.TaintEffectNoSchedule}

func supportedCluster() *nodespec.Cluster {
	certificate := "-----BEGIN CERTIFICATE-----\nQVBJIHNlcnZlcg==\n-----END CERTIFICATE-----\n"
	return &nodespec.Cluster{
		Platform: "AWS", Version: "5.0.1",
		APIServerInternalURL: "https://api-int.lab.example.com:6443",
		APIServerCA:          certificate, KubeletClientCA: certificate, ServiceCIDRs: []string{"172.30.0.0/16"},
		Kubelet: nodespec.WorkerKubelet{ClusterDNS: []string{"172.30.0.10"}, ClusterDomain: "cluster.local"},
		Network: nodespec.ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true,
			HybridClusterNetworks: []string{"10.132.0.0/14"}},
	}
}

// completePayload returns a payload with every program that a node needs.
func completePayload(t *testing.T) *payload.Payload {
	t.Helper()
	var sources []payload.Source
	for component, programs := range map[string][]string{
		payload.ComponentAgent: {"wicd.exe"}, "containerd": {"containerd.exe", "containerd-shim-runhcs-v1.exe"},
		"kubelet":    {"kubelet.exe"},
		"kube-proxy": {"kube-proxy.exe"}, "kube-log-runner": {"kube-log-runner.exe"},
		"hybrid-overlay-node":      {"hybrid-overlay-node.exe"},
		"cni":                      {"win-overlay.exe", "host-local.exe", "win-bridge.exe"},
		"windows_exporter":         {"windows_exporter.exe"},
		"csi-proxy":                {"csi-proxy.exe"},
		"ecr-credential-provider":  {"ecr-credential-provider.exe"},
		"azure-cloud-node-manager": {"azure-cloud-node-manager.exe"},
	} {
		source := payload.Source{Component: payload.Component{Name: component, Version: "v1",
			Source: "example.org/" + component + "@v1"}}
		for _, program := range programs {
			source.Files = append(source.Files, payload.File{Path: program})
			source.Content = append(source.Content, func() (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(program)), nil
			})
		}
		sources = append(sources, source)
	}
	p, err := payload.Write(t.TempDir(), payload.Build{Version: "1.2.3", Components: sources})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newPrivateKey returns a key in its file format and parsed.
func newPrivateKey(t *testing.T) ([]byte, sshkey.Key) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	data := pem.EncodeToMemory(block)
	key, err := sshkey.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return data, key
}

// stale is a cache that still has a deleted instance.
type stale struct {
	client.Client
	instance *v1alpha1.WindowsInstance
}

func (s stale) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if instance, ok := into.(*v1alpha1.WindowsInstance); ok {
		s.instance.DeepCopyInto(instance)
		return nil
	}
	return s.Client.Get(ctx, key, into, options...)
}

// getInstance returns the stored instance.
func (x *trial) getInstance() *v1alpha1.WindowsInstance {
	x.t.Helper()
	instance := &v1alpha1.WindowsInstance{}
	if err := x.Client.Get(x.t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: machine}, instance); err != nil {
		x.t.Fatal(err)
	}
	return instance
}

func (x *trial) annotateInstance(name, value string) {
	x.t.Helper()
	instance := x.getInstance()
	instance.Annotations = map[string]string{name: value}
	if err := x.Client.Update(x.t.Context(), instance); err != nil {
		x.t.Fatal(err)
	}
}

// breakNode makes the node NotReady. The operator has known that for longer than its delay, regardless of the
// host's clock.
func (x *trial) breakNode() { x.breakNodeSince(noon.Add(-time.Hour), noon.Add(time.Hour)) }

// breakNodeSince makes the node NotReady since one time by the operator's clock, and another time by the host's
// clock.
func (x *trial) breakNodeSince(seen, reported time.Time) {
	x.t.Helper()
	node := x.getNode()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse,
		LastTransitionTime: metav1.NewTime(reported)}}
	if err := x.Client.Status().Update(x.t.Context(), node); err != nil {
		if err = x.Client.Update(x.t.Context(), node); err != nil {
			x.t.Fatal(err)
		}
	}
	instance := x.getInstance()
	instance.Status.Readiness = &v1alpha1.Readiness{Since: metav1.NewTime(seen)}
	if err := x.Client.Status().Update(x.t.Context(), instance); err != nil {
		x.t.Fatal(err)
	}
}

// nodeWithSubnet returns a Node with the fields that its NodeSpec depends on.
func nodeWithSubnet(subnet string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationPodSubnet: subnet}}}
}
