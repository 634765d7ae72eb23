package monitoring_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

const monitoringLabel = "openshift.io/cluster-monitoring"

// fixture is a Reconciler on a real API server, with only the rights of deploy/.
type fixture struct {
	*testing.T
	namespace string
	admin     client.Client
	operator  client.WithWatch
	events    *events.FakeRecorder
	*monitoring.Reconciler
	writes int
	reads  int // of the API server
	// refuse returns the API server's error for a write.
	refuse func(client.Object) error
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	r, err := testenv.New(t.Context(), testenv.Options{Cluster: lab.Cluster(t)})
	requireNoError(t, err)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	requireNoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme)))
	clientOf := func(config *rest.Config) client.WithWatch {
		config = rest.CopyConfig(config)
		config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
		c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
		requireNoError(t, err)
		return c
	}
	config, err := r.InstallOperator(t.Context(), "")
	requireNoError(t, err)
	f := &fixture{T: t, namespace: r.Namespace(), admin: clientOf(r.Config), operator: clientOf(config)}
	t.Cleanup(f.deleteObjects)
	f.start()
	return f
}

// deleteObjects deletes the objects of the operator: tests share the namespace.
func (f *fixture) deleteObjects() {
	ctx := context.WithoutCancel(f.Context())
	object := metav1.ObjectMeta{Namespace: f.namespace, Name: monitoring.Name}
	rules := newUnstructured("PrometheusRule")
	rules.SetNamespace(f.namespace)
	rules.SetName(monitoring.RulesName)
	monitor := newUnstructured("ServiceMonitor")
	monitor.SetNamespace(f.namespace)
	monitor.SetName(monitoring.Name)
	own := monitor.DeepCopy()
	own.SetName(v1alpha1.OperatorName)
	shown := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: monitoring.DashboardNamespace, Name: monitoring.DashboardName}}
	for _, o := range []client.Object{&corev1.Service{ObjectMeta: object}, rules, monitor, own, shown} {
		if err := client.IgnoreNotFound(f.admin.Delete(ctx, o)); err != nil {
			f.Error(err)
		}
	}
	if err := f.admin.DeleteAllOf(ctx, &discoveryv1.EndpointSlice{}, client.InNamespace(f.namespace)); err != nil {
		f.Error(err)
	}
}

// start creates a new process of the operator.
func (f *fixture) start() {
	f.events = events.NewFakeRecorder(100)
	counting := interceptor.NewClient(f.operator, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			f.writes++
			if err := f.writeError(o); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			f.writes++
			if err := f.writeError(o); err != nil {
				return err
			}
			return c.Update(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			f.writes++
			if err := f.writeError(o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			f.writes++
			if err := f.writeError(o); err != nil {
				return err
			}
			return c.Delete(ctx, o, options...)
		},
	})
	live := interceptor.NewClient(f.operator, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			f.reads++
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			f.reads++
			return c.List(ctx, list, options...)
		},
	})
	f.Reconciler = &monitoring.Reconciler{Client: admins{counting, f.admin}, Live: live, Namespace: f.namespace,
		Events: f.events, Conditions: operatorcondition.NewWriter(nil, nil, f.namespace, ""), Clock: clock.RealClock{}}
}

func (f *fixture) writeError(o client.Object) error {
	if f.refuse == nil {
		return nil
	}
	return f.refuse(o)
}

// admins reads lists as the administrator: the manager's cache may list objects that this client may not read.
type admins struct {
	client.Client
	lists client.Reader
}

func (a admins) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return a.lists.List(ctx, list, options...)
}

// reconcileAll runs one complete reconcile, and returns the number of writes.
func (f *fixture) reconcileAll() int {
	f.Helper()
	f.writes = 0
	result, err := f.Reconcile(f.Context(), ctrl.Request{})
	requireNoError(f.T, err)
	if result.RequeueAfter == 0 || result.RequeueAfter > time.Minute {
		f.Errorf("it looks again after %s", result.RequeueAfter)
	}
	return f.writes
}

// onlyAddresses is the request of the operator after a change of a node.
var onlyAddresses = ctrl.Request{NamespacedName: client.ObjectKey{Name: "addresses"}}

// reconcileAddresses reconciles the changes of nodes, and returns the numbers of reads and writes.
func (f *fixture) reconcileAddresses() (reads, writes int) {
	f.Helper()
	f.reads, f.writes = 0, 0
	_, err := f.Reconcile(f.Context(), onlyAddresses)
	requireNoError(f.T, err)
	return f.reads, f.writes
}

// drainEvents returns the events since the last call.
func (f *fixture) drainEvents() (recorded []string) {
	for len(f.events.Events) > 0 {
		recorded = append(recorded, <-f.events.Events)
	}
	return recorded
}

// createObjects creates objects as the administrator, and deletes them after the test.
func (f *fixture) createObjects(objects ...client.Object) {
	f.Helper()
	for _, object := range objects {
		requireNoError(f.T, f.admin.Create(f.Context(), object))
		f.Cleanup(func() {
			if err := client.IgnoreNotFound(f.admin.Delete(context.WithoutCancel(f.Context()), object)); err != nil {
				f.Error(err)
			}
		})
	}
}

// createNode creates a node in service, with the address ip unless ip is empty, and the instance of the node.
func (f *fixture) createNode(name, ip string) *v1alpha1.WindowsInstance {
	f.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels:      map[string]string{corev1.LabelOSStable: "windows"},
		Annotations: map[string]string{v1alpha1.AnnotationVersion: "12.0.0", v1alpha1.AnnotationInstance: name}}}
	f.createObjects(node)
	before := node.DeepCopy()
	if ip != "" {
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	}
	requireNoError(f.T, f.admin.Status().Patch(f.Context(), node, client.MergeFrom(before)))
	ip = cmp.Or(ip, "10.0.0.99") // the address that the operator uses, independent of the Node
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: v1alpha1.WindowsInstanceSpec{Address: ip, Username: "Administrator", DesiredState: v1alpha1.DesiredStateNode,
			Source: v1alpha1.Source{ConfigMapKey: ip}}}
	f.createObjects(instance)
	instance.Status.NodeRef = &v1alpha1.NodeReference{Name: name, UID: string(node.UID), Confirmed: true}
	requireNoError(f.T, f.admin.Status().Update(f.Context(), instance))
	return instance
}

// listSlices returns the EndpointSlices of the Service.
func (f *fixture) listSlices() []discoveryv1.EndpointSlice {
	f.Helper()
	var list discoveryv1.EndpointSliceList
	requireNoError(f.T, f.admin.List(f.Context(), &list, client.InNamespace(f.namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: monitoring.Name}))
	return list.Items
}

// listedAddresses returns the nodes in the EndpointSlices, each with its address.
func (f *fixture) listedAddresses() []string {
	f.Helper()
	var listed []string
	for _, slice := range f.listSlices() {
		for _, e := range slice.Endpoints {
			listed = append(listed, *e.NodeName+" "+e.Addresses[0])
		}
	}
	slices.Sort(listed)
	return listed
}

// getServiceMonitor and getRules return the objects of the prometheus-operator; nil if the object does not exist.
func (f *fixture) getServiceMonitor() *unstructured.Unstructured {
	return f.getObject("ServiceMonitor", monitoring.Name)
}
func (f *fixture) getRules() *unstructured.Unstructured {
	return f.getObject("PrometheusRule", monitoring.RulesName)
}

func (f *fixture) getObject(kind, name string) *unstructured.Unstructured {
	f.Helper()
	object := newUnstructured(kind)
	err := f.admin.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	requireNoError(f.T, err)
	return object
}

func newUnstructured(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind})
	return object
}

func (f *fixture) setMonitoringLabel(value string) {
	f.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, monitoringLabel, value)
	requireNoError(f.T, f.admin.Patch(f.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}},
		client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func (f *fixture) waitUntil(what string, holds func(context.Context) (bool, error)) {
	f.Helper()
	if err := wait.PollUntilContextTimeout(f.Context(), 20*time.Millisecond, 2*time.Minute, true, holds); err != nil {
		f.Fatalf("%s: %v", what, err)
	}
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// many lists a number of nodes.
type many struct {
	client.Reader
	count int
}

func (m many) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	nodes, ok := list.(*corev1.NodeList)
	if !ok {
		return m.Reader.List(ctx, list, options...)
	}
	for i := range m.count {
		node := corev1.Node{}
		node.Name, node.UID = fmt.Sprintf("node-%04d", i), "some"
		node.Annotations = map[string]string{v1alpha1.AnnotationVersion: "12.0.0"}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP,
			Address: fmt.Sprintf("10.1.%d.%d", i/250, 1+i%250)}}
		nodes.Items = append(nodes.Items, node)
	}
	return nil
}
