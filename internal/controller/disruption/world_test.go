package disruption_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/internal/controller/source/machine"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Nodes are reported once, and have no running kubelets.
var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift, NodeGracePeriod: time.Hour})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

const (
	namespace = testenv.Namespace
	version   = "12.1.0"
	before    = "12.0.0"
	condition = "windows-machine-config-operator.v12.1.0"
)

// world is a real API server with the rights of the operator, and a separate clock.
type world struct {
	t              *testing.T
	admin          client.WithWatch
	operatorConfig *rest.Config
	scheme         *runtime.Scheme
	clock          *clocktesting.FakePassiveClock
	// ahead is the offset of the host clocks.
	ahead time.Duration
}

// advanceClock advances the clock.
func (w *world) advanceClock(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

func newWorld(t *testing.T) *world {
	t.Helper()
	r, err := testenv.New(t.Context(), testenv.Options{Cluster: lab.Cluster(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	// The API server stores whole seconds.
	w := &world{t: t, scheme: runtime.NewScheme(),
		clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second))}
	if w.operatorConfig, err = r.InstallOperator(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(clientgoscheme.AddToScheme(w.scheme), v1alpha1.AddToScheme(w.scheme),
		machinev1beta1.Install(w.scheme), operatorsv2.AddToScheme(w.scheme)); err != nil {
		t.Fatal(err)
	}
	if w.admin, err = client.NewWithWatch(r.Config, client.Options{Scheme: w.scheme}); err != nil {
		t.Fatal(err)
	}
	return w
}

// forSubtest returns the world for a subtest, with objects that are removed at the end.
func (w *world) forSubtest(t *testing.T) *world {
	t.Helper()
	s := *w
	s.t = t
	s.clock = clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second))
	t.Cleanup(func() {
		ctx := context.Background()
		var machines machinev1beta1.MachineList
		err := w.admin.List(ctx, &machines, client.InNamespace(v1alpha1.MachineNamespace))
		for i := range machines.Items {
			if m := &machines.Items[i]; len(m.Finalizers) > 0 {
				m.Finalizers = nil
				err = errors.Join(err, client.IgnoreNotFound(w.admin.Update(ctx, m)))
			}
		}
		err = errors.Join(err,
			w.admin.DeleteAllOf(ctx, &v1alpha1.WindowsDisruptionPolicy{}, client.InNamespace(namespace)),
			w.admin.DeleteAllOf(ctx, &v1alpha1.WindowsInstance{}, client.InNamespace(namespace)),
			w.admin.DeleteAllOf(ctx, &operatorsv2.OperatorCondition{}, client.InNamespace(namespace)),
			w.admin.DeleteAllOf(ctx, &machinev1beta1.Machine{}, client.InNamespace(v1alpha1.MachineNamespace)),
			w.admin.DeleteAllOf(ctx, &machinev1beta1.MachineSet{}, client.InNamespace(v1alpha1.MachineNamespace)),
			w.admin.DeleteAllOf(ctx, &corev1.Node{}),
		)
		if err != nil {
			t.Error(err)
		}
	})
	return &s
}

func (w *world) requireNoError(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) waitUntil(what string, condition func(ctx context.Context) (bool, error)) {
	w.t.Helper()
	if err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, 3*time.Minute, true,
		condition); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// createHost creates a listed host with a node in service.
func (w *world) createHost(name, version string) *v1alpha1.WindowsInstance {
	w.t.Helper()
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	instance.Spec = v1alpha1.WindowsInstanceSpec{Address: name + ".example.com",
		Source: v1alpha1.Source{ConfigMapKey: name}, DesiredState: v1alpha1.DesiredStateNode}
	return w.createNodeInService(instance, version)
}

// createMachineSet creates a MachineSet.
func (w *world) createMachineSet(name string, replicas int32) *machinev1beta1.MachineSet {
	w.t.Helper()
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: name}}
	set.Spec.Replicas = ptr.To(replicas)
	set.Spec.Selector.MatchLabels = map[string]string{"set": name}
	set.Spec.Template.Labels = map[string]string{"set": name, v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows}
	w.requireNoError(w.admin.Create(w.t.Context(), set))
	return set
}

// createMachine creates a Machine of a set with a node in service. A deleted Machine remains until completeDeletion
// is called.
func (w *world) createMachine(set *machinev1beta1.MachineSet, name, version string) *v1alpha1.WindowsInstance {
	w.t.Helper()
	created := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.MachineNamespace, Name: name, Labels: set.Spec.Template.Labels,
		Finalizers: []string{machinev1beta1.MachineFinalizer},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set,
			machinev1beta1.GroupVersion.WithKind("MachineSet"))},
	}}
	w.requireNoError(w.admin.Create(w.t.Context(), created))
	created.Status.Phase, created.Status.NodeRef = ptr.To(machinev1beta1.PhaseRunning), &corev1.ObjectReference{Name: name}
	w.requireNoError(w.admin.Status().Update(w.t.Context(), created))
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	instance.Spec = v1alpha1.WindowsInstanceSpec{
		Address: name, DesiredState: v1alpha1.DesiredStateNode,
		Source: v1alpha1.Source{Machine: &v1alpha1.MachineReference{Namespace: v1alpha1.MachineNamespace,
			Name: name, UID: created.UID}},
	}
	return w.createNodeInService(instance, version)
}

func (w *world) createNodeInService(instance *v1alpha1.WindowsInstance, version string) *v1alpha1.WindowsInstance {
	w.t.Helper()
	w.requireNoError(w.admin.Create(w.t.Context(), instance))
	instance.Status = v1alpha1.WindowsInstanceStatus{Version: version,
		NodeRef: &v1alpha1.NodeReference{Name: instance.Name, Confirmed: true}}
	w.requireNoError(w.admin.Status().Update(w.t.Context(), instance))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: instance.Name, Labels: map[string]string{corev1.LabelOSStable: "windows"},
		Annotations: map[string]string{v1alpha1.AnnotationInstance: instance.Name, v1alpha1.AnnotationVersion: version},
	}}
	w.requireNoError(w.admin.Create(w.t.Context(), node))
	w.reportNode(node.Name, true, "v1.35.1")
	return instance
}

// reportNode writes the report of a kubelet.
func (w *world) reportNode(node string, ready bool, kubelet string) {
	w.t.Helper()
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	w.patchNode(node, func(n *corev1.Node) {
		n.Status.NodeInfo.KubeletVersion = kubelet
		n.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(w.clock.Now().Add(w.ahead)),
			LastHeartbeatTime: metav1.Now(),
		}}
	})
}

// patchNode changes a Node that other clients change too.
func (w *world) patchNode(name string, change func(*corev1.Node)) {
	w.t.Helper()
	node := &corev1.Node{}
	w.requireNoError(w.admin.Get(w.t.Context(), client.ObjectKey{Name: name}, node))
	from := node.DeepCopy()
	change(node)
	w.requireNoError(w.admin.Patch(w.t.Context(), node.DeepCopy(), client.MergeFrom(from)))
	w.requireNoError(w.admin.Status().Patch(w.t.Context(), node.DeepCopy(), client.MergeFrom(from)))
}

func (w *world) getPolicy() *v1alpha1.WindowsDisruptionPolicy {
	w.t.Helper()
	p := &v1alpha1.WindowsDisruptionPolicy{}
	w.requireNoError(w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha1.DisruptionPolicyName}, p))
	return p
}

// disruptedInstances returns the instances on the list.
func (w *world) disruptedInstances() []string {
	w.t.Helper()
	var names []string
	for _, d := range w.getPolicy().Status.Disruptions {
		names = append(names, d.Instance)
	}
	return names
}

// editPolicy writes the policy as an administrator would, and creates it if necessary.
func (w *world) editPolicy(change func(*v1alpha1.WindowsDisruptionPolicySpec)) {
	w.t.Helper()
	p := &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: v1alpha1.DisruptionPolicyName}}
	w.requireNoError(client.IgnoreAlreadyExists(w.admin.Create(w.t.Context(), p)))
	p = w.getPolicy()
	from := p.DeepCopy()
	change(&p.Spec)
	w.requireNoError(w.admin.Patch(w.t.Context(), p, client.MergeFrom(from)))
}

// process is an operator that runs only the gate and its controller.
type process struct {
	w *world
	*disruption.PolicyGate
	reconciler disruption.Reconciler
	recorder   *events.FakeRecorder
	mgr        ctrl.Manager
	// requests counts the requests to the API server except watches, and writes counts the writing requests.
	requests, writes atomic.Int64
	// configuration is the desired settings of all nodes.
	configuration string
	// refuse is the error of each create request; nil if requests are not refused.
	refuse *apierrors.StatusError
}

// start starts an operator. If run is true, the controller runs; otherwise the test reconciles.
func (w *world) start(name string, run bool) *process {
	w.t.Helper()
	p := &process{w: w, recorder: events.NewFakeRecorder(10000)}
	c := rest.CopyConfig(w.operatorConfig)
	c.QPS = -1
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "" {
				p.requests.Add(1)
			}
			if r.Method != http.MethodGet {
				p.writes.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	var err error
	p.mgr, err = ctrl.NewManager(c, ctrl.Options{
		Scheme: w.scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
		},
	})
	w.requireNoError(err)
	memory, err := client.NewWithWatch(c, client.Options{Scheme: w.scheme,
		Cache: &client.CacheOptions{Reader: p.mgr.GetCache()}})
	w.requireNoError(err)
	refusing := interceptor.NewClient(memory, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if p.refuse != nil {
				return p.refuse
			}
			return c.Create(ctx, o, options...)
		},
	})
	p.PolicyGate = disruption.NewGate(disruption.Options{
		Client: refusing, Live: p.mgr.GetAPIReader(), Namespace: namespace, Version: version, Operator: name,
		Configuration: func() string { return p.configuration }, Events: p.recorder, Clock: w.clock,
	})
	p.reconciler = disruption.Reconciler{
		Gate: p.PolicyGate, Conditions: operatorcondition.NewWriter(p.mgr.GetClient(), p.mgr.GetAPIReader(), namespace, ""),
		Clock: clock.RealClock{},
	}
	if run {
		w.requireNoError(p.reconciler.SetupWithManager(p.mgr))
		machines, err := machine.NewCache(p.mgr)
		w.requireNoError(err)
		w.requireNoError(p.reconciler.WatchMachines(machines))
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	p.mgr.GetCache().WaitForCacheSync(ctx)
	_, err = p.Holds(w.t.Context(), "any") // fills the cache
	w.requireNoError(err)
	return p
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (p *process) acquireSlot(instance *v1alpha1.WindowsInstance, cause v1alpha1.DisruptionCause) disruptionpolicy.Decision {
	p.w.t.Helper()
	decision, err := p.Acquire(p.w.t.Context(), disruptionpolicy.Request{Instance: instance.Name, UID: instance.UID,
		Cause: cause, Version: version})
	p.w.requireNoError(err)
	return decision
}

func (p *process) acquireReplacement(instance *v1alpha1.WindowsInstance) disruptionpolicy.Decision {
	p.w.t.Helper()
	decision, err := p.Acquire(p.w.t.Context(), disruptionpolicy.Request{
		Instance: instance.Name, UID: instance.UID, Cause: v1alpha1.CauseUpgrade, Version: version, Replaces: true,
	})
	p.w.requireNoError(err)
	return decision
}

func (p *process) releaseSlot(instance *v1alpha1.WindowsInstance) {
	p.w.t.Helper()
	p.w.requireNoError(p.Release(p.w.t.Context(), instance.Name))
}

func (p *process) reconcile() ctrl.Result {
	p.w.t.Helper()
	result, err := p.reconciler.Reconcile(p.w.t.Context(), ctrl.Request{})
	p.w.requireNoError(err)
	return result
}

// eventsWithReason returns the events with the given reason since the last call.
func (p *process) eventsWithReason(reason string) (found []string) {
	for len(p.recorder.Events) > 0 {
		if e := <-p.recorder.Events; strings.Contains(e, " "+reason+" ") {
			found = append(found, e)
		}
	}
	return found
}

// metricValue returns the value of a metric, over all labels.
func metricValue(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// deleteMachine requests the deletion of an instance's Machine.
func (w *world) deleteMachine(instance *v1alpha1.WindowsInstance) *machinev1beta1.Machine {
	w.t.Helper()
	machine := &machinev1beta1.Machine{}
	w.requireNoError(w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: v1alpha1.MachineNamespace,
		Name: instance.Spec.Source.Machine.Name}, machine))
	w.requireNoError(w.admin.Delete(w.t.Context(), machine))
	return machine
}

// completeDeletion completes the deletion of a Machine, with its Node and instance.
func (w *world) completeDeletion(machine *machinev1beta1.Machine, instance *v1alpha1.WindowsInstance) {
	w.t.Helper()
	w.requireNoError(w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(machine), machine))
	machine.Finalizers = nil
	w.requireNoError(w.admin.Update(w.t.Context(), machine))
	w.requireNoError(w.admin.Delete(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: instance.Name}}))
	w.requireNoError(w.admin.Delete(w.t.Context(), instance))
}
