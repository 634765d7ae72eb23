package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
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
	"github.com/windows-machine-config/wmco/lab/rig"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

const monitoringLabel = "openshift.io/cluster-monitoring"

// fixture is a Reconciler on a real API server, with the rights of deploy/ and no others.
type fixture struct {
	*testing.T
	namespace string
	admin     client.Client
	operator  client.WithWatch
	events    *events.FakeRecorder
	*monitoring.Reconciler
	writes int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	r, err := rig.New(t.Context(), rig.Options{Cluster: lab.Cluster(t)})
	must(t, err)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme)))
	clientOf := func(config *rest.Config) client.WithWatch {
		config = rest.CopyConfig(config)
		config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
		c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
		must(t, err)
		return c
	}
	config, err := r.InstallOperator(t.Context(), "")
	must(t, err)
	f := &fixture{T: t, namespace: r.Namespace(), admin: clientOf(r.Config), operator: clientOf(config)}
	t.Cleanup(f.clear)
	f.start()
	return f
}

// clear deletes what the operator has made: tests share the namespace.
func (f *fixture) clear() {
	ctx := context.WithoutCancel(f.Context())
	object := metav1.ObjectMeta{Namespace: f.namespace, Name: monitoring.Name}
	rules := empty("PrometheusRule")
	rules.SetNamespace(f.namespace)
	rules.SetName(monitoring.RulesName)
	monitor := empty("ServiceMonitor")
	monitor.SetNamespace(f.namespace)
	monitor.SetName(monitoring.Name)
	for _, o := range []client.Object{&corev1.Service{ObjectMeta: object}, rules, monitor,
		&corev1.Endpoints{ObjectMeta: object}} { //nolint:staticcheck // Prometheus reads them
		if err := client.IgnoreNotFound(f.admin.Delete(ctx, o)); err != nil {
			f.Error(err)
		}
	}
	if err := f.admin.DeleteAllOf(ctx, &discoveryv1.EndpointSlice{}, client.InNamespace(f.namespace)); err != nil {
		f.Error(err)
	}
}

// start is a new process of the operator.
func (f *fixture) start() {
	f.events = events.NewFakeRecorder(100)
	counting := interceptor.NewClient(f.operator, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			f.writes++
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			f.writes++
			return c.Update(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			f.writes++
			return c.Patch(ctx, o, p, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			f.writes++
			return c.Delete(ctx, o, options...)
		},
	})
	f.Reconciler = &monitoring.Reconciler{Client: admins{counting, f.admin}, Live: f.operator, Namespace: f.namespace,
		Events: f.events, Conditions: operatorcondition.NewWriter(nil, nil, f.namespace, ""), Clock: clock.RealClock{}}
}

// admins reads lists as the administrator: the manager's cache may list what this client would have to ask for.
type admins struct {
	client.Client
	lists client.Reader
}

func (a admins) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return a.lists.List(ctx, list, options...)
}

// look has the operator look once, and returns the number of its writes.
func (f *fixture) look() int {
	f.Helper()
	f.writes = 0
	result, err := f.Reconcile(f.Context(), ctrl.Request{})
	must(f.T, err)
	if result.RequeueAfter == 0 || result.RequeueAfter > time.Minute {
		f.Errorf("it looks again after %s", result.RequeueAfter)
	}
	return f.writes
}

// said returns the events since it was last asked.
func (f *fixture) said() (said []string) {
	for len(f.events.Events) > 0 {
		said = append(said, <-f.events.Events)
	}
	return said
}

// create makes objects as the administrator, and deletes them after the test.
func (f *fixture) create(objects ...client.Object) {
	f.Helper()
	for _, object := range objects {
		must(f.T, f.admin.Create(f.Context(), object))
		f.Cleanup(func() {
			if err := client.IgnoreNotFound(f.admin.Delete(context.WithoutCancel(f.Context()), object)); err != nil {
				f.Error(err)
			}
		})
	}
}

// node makes a node in service with its instance.
func (f *fixture) node(name, ip string) *v1alpha1.WindowsInstance {
	f.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels:      map[string]string{corev1.LabelOSStable: "windows"},
		Annotations: map[string]string{v1alpha1.AnnotationVersion: "12.0.0", v1alpha1.AnnotationInstance: name}}}
	f.create(node)
	before := node.DeepCopy()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	must(f.T, f.admin.Status().Patch(f.Context(), node, client.MergeFrom(before)))
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: v1alpha1.WindowsInstanceSpec{Address: ip, Username: "Administrator", DesiredState: v1alpha1.DesiredStateNode,
			Source: v1alpha1.Source{ConfigMapKey: ip}}}
	f.create(instance)
	instance.Status.NodeRef = &v1alpha1.NodeReference{Name: name, UID: string(node.UID), Confirmed: true}
	must(f.T, f.admin.Status().Update(f.Context(), instance))
	return instance
}

// slices returns the EndpointSlices of the Service.
func (f *fixture) slices() []discoveryv1.EndpointSlice {
	f.Helper()
	var list discoveryv1.EndpointSliceList
	must(f.T, f.admin.List(f.Context(), &list, client.InNamespace(f.namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: monitoring.Name}))
	return list.Items
}

// listed returns the nodes that are in the EndpointSlices, each with its address, and checks that Endpoints have the same.
func (f *fixture) listed() []string {
	f.Helper()
	var listed, older []string
	for _, slice := range f.slices() {
		for _, e := range slice.Endpoints {
			listed = append(listed, *e.NodeName+" "+e.Addresses[0])
		}
	}
	for _, subset := range f.endpoints().Subsets {
		for _, a := range subset.Addresses {
			older = append(older, *a.NodeName+" "+a.IP)
		}
	}
	slices.Sort(listed)
	slices.Sort(older)
	if !slices.Equal(listed, older) {
		f.Errorf("the slices have %v, the Endpoints %v", listed, older)
	}
	return listed
}

func (f *fixture) endpoints() *corev1.Endpoints { //nolint:staticcheck // Prometheus reads them
	f.Helper()
	found := &corev1.Endpoints{} //nolint:staticcheck // Prometheus reads them
	must(f.T, f.admin.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: monitoring.Name}, found))
	return found
}

// monitor and rules are the objects of the prometheus-operator; nil when there is none.
func (f *fixture) monitor() *unstructured.Unstructured {
	return f.object("ServiceMonitor", monitoring.Name)
}
func (f *fixture) rules() *unstructured.Unstructured {
	return f.object("PrometheusRule", monitoring.RulesName)
}

func (f *fixture) object(kind, name string) *unstructured.Unstructured {
	f.Helper()
	object := empty(kind)
	err := f.admin.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	must(f.T, err)
	return object
}

func empty(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind})
	return object
}

func (f *fixture) label(value string) {
	f.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, monitoringLabel, value)
	must(f.T, f.admin.Patch(f.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}},
		client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func (f *fixture) await(what string, holds func(context.Context) (bool, error)) {
	f.Helper()
	if err := wait.PollUntilContextTimeout(f.Context(), 20*time.Millisecond, 2*time.Minute, true, holds); err != nil {
		f.Fatalf("%s: %v", what, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

//
func TestNodesAreScrapedWhileTheyAreInService(t *testing.T) {
	f := newFixture(t)
	f.look()
	if got := f.listed(); len(got) > 0 || f.monitor() == nil || f.rules() == nil {
		t.Fatalf("without nodes %v are listed", got)
	}
	f.node("win-a", "10.0.0.1")
	instance := f.node("win-b", "10.0.0.2")
	both := []string{"win-a 10.0.0.1", "win-b 10.0.0.2"}
	f.look()
	if got := f.listed(); !slices.Equal(got, both) {
		t.Fatalf("%v are listed", got)
	}
	t.Run("a look at what is right writes nothing", func(t *testing.T) {
		if writes := f.look(); writes > 0 {
			t.Errorf("%d writes", writes)
		}
	})
	t.Run("nor does another process of the operator, which takes nothing away", func(t *testing.T) {
		f.start()
		if writes := f.look(); writes > 0 || !slices.Equal(f.listed(), both) {
			t.Errorf("%d writes", writes)
		}
	})
	t.Run("no event says what was well from the beginning", func(t *testing.T) {
		if said := f.said(); len(said) > 0 {
			t.Errorf("%v", said)
		}
	})
	t.Run("Kubernetes makes no slice of the Endpoints", func(t *testing.T) {
		if got := f.slices(); len(got) != 1 {
			t.Errorf("%d slices", len(got))
		}
	})
	t.Run("one that leaves is taken out before its Node goes", func(t *testing.T) {
		instance.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		must(t, f.admin.Update(t.Context(), instance))
		if writes := f.look(); writes != 2 || !slices.Equal(f.listed(), both[:1]) {
			t.Errorf("after %d writes %v are listed", writes, f.listed())
		}
	})
	t.Run("the last one leaves no slice", func(t *testing.T) {
		must(t, f.admin.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}}))
		if f.look(); len(f.slices()) > 0 || len(f.listed()) > 0 {
			t.Errorf("%v", f.slices())
		}
	})
}

//
func TestTheObjectsSayWhatPrometheusNeeds(t *testing.T) {
	f := newFixture(t)
	f.look()
	service := &corev1.Service{}
	must(t, f.admin.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "windows-exporter"}, service))
	if service.Annotations["service.beta.openshift.io/serving-cert-secret-name"] != "windows-machine-config-operator-tls" ||
		service.Labels["name"] != "windows-exporter" || len(service.Spec.Selector) > 0 ||
		len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Name != "metrics" || service.Spec.Ports[0].Port != 9182 {
		t.Errorf("the Service is %+v", service)
	}
	spec, _, _ := unstructured.NestedSlice(f.monitor().Object, "spec", "endpoints")
	endpoint, _ := spec[0].(map[string]any)
	tls, _ := endpoint["tlsConfig"].(map[string]any)
	if endpoint["scheme"] != "https" || endpoint["port"] != "metrics" || endpoint["honorLabels"] == true ||
		tls["serverName"] != "windows-exporter."+f.namespace+".svc" || tls["insecureSkipVerify"] == true ||
		!strings.HasSuffix(fmt.Sprint(tls["caFile"]), "/service-ca.crt") {
		t.Errorf("the ServiceMonitor scrapes %v", endpoint)
	}
}

//
func TestTheLabelOfTheNamespaceTurnsMonitoringOnAndOff(t *testing.T) {
	f := newFixture(t)
	f.label("null")
	f.node("win-a", "10.0.0.1")
	f.look()
	said := f.said()
	if len(said) != 1 || !strings.HasPrefix(said[0], "Warning MonitoringDisabled") ||
		!strings.Contains(said[0], "oc label namespace "+f.namespace+" "+monitoringLabel+"=true") {
		t.Errorf("it is said %q", said)
	}
	if f.monitor() != nil || f.rules() != nil {
		t.Error("there is a ServiceMonitor or a PrometheusRule")
	}
	if got := f.listed(); len(got) != 1 {
		t.Errorf("%v are listed", got)
	}
	if writes := f.look(); writes > 0 || len(f.said()) > 0 {
		t.Errorf("%d writes", writes)
	}
	f.label(`"true"`)
	f.look()
	if said := f.said(); len(said) != 1 || !strings.HasPrefix(said[0], "Normal MonitoringEnabled") {
		t.Errorf("it is said %q", said)
	}
	if f.monitor() == nil || f.rules() == nil {
		t.Fatal("there is no ServiceMonitor or no PrometheusRule")
	}
	f.label(`"false"`)
	f.look()
	if f.monitor() != nil || f.rules() != nil || len(f.listed()) != 1 {
		t.Error("the ServiceMonitor or the PrometheusRule stays")
	}
}

// What operators before version 12 have left is taken over, wrong addresses included.
func TestTheObjectsOfAnOlderOperatorAreTakenOver(t *testing.T) {
	f := newFixture(t)
	f.node("win-a", "10.0.0.1")
	csv := metav1.OwnerReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion",
		Name: "windows-machine-config-operator.v11.0.0", UID: "gone"}
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: monitoring.Name, Labels: map[string]string{"name": monitoring.Name}}
	service := &corev1.Service{ObjectMeta: *meta.DeepCopy(), Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Name: "metrics", Port: 9182}}}}
	service.Annotations = map[string]string{
		"service.alpha.openshift.io/serving-cert-secret-name": "windows-machine-config-operator-tls"}
	list := &corev1.Endpoints{ObjectMeta: *meta.DeepCopy(), //nolint:staticcheck // Prometheus reads them
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // Prometheus reads them
			Addresses: []corev1.EndpointAddress{{IP: "10.0.0.99", TargetRef: &corev1.ObjectReference{Kind: "Node", Name: "gone"}}},
			Ports:     []corev1.EndpointPort{{Name: "metrics", Port: 9182}},
		}}}
	monitor := empty("ServiceMonitor")
	monitor.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"k8s-app": "kubelet"}},
		"endpoints": []any{map[string]any{"port": "https-metrics", "scheme": "https",
			"tlsConfig": map[string]any{"serverName": "windows-exporter." + f.namespace + ".svc"}}},
	}
	recorded := empty("PrometheusRule")
	recorded.Object["spec"] = map[string]any{"groups": []any{map[string]any{"name": "windows.rules",
		"rules": []any{map[string]any{"record": "node_cpu_info", "expr": "windows_cpu_info"}}}}}
	monitor.SetName(monitoring.Name)
	recorded.SetName(monitoring.RulesName)
	for _, object := range []client.Object{monitor, recorded} {
		object.SetNamespace(f.namespace)
	}
	f.create(service, list, monitor, recorded)
	f.await("Kubernetes has made a slice of the older operator's Endpoints", func(context.Context) (bool, error) {
		return len(f.slices()) == 1, nil
	})
	service.OwnerReferences = []metav1.OwnerReference{csv}
	must(t, f.admin.Update(t.Context(), service))
	f.look()
	f.await("Kubernetes has deleted its slice", func(context.Context) (bool, error) { return len(f.slices()) == 1, nil })
	if got := f.listed(); !slices.Equal(got, []string{"win-a 10.0.0.1"}) {
		t.Errorf("%v are listed", got)
	}
	after := &corev1.Service{}
	must(t, f.admin.Get(t.Context(), client.ObjectKeyFromObject(service), after))
	if after.UID != service.UID || after.Spec.ClusterIP != service.Spec.ClusterIP || len(after.OwnerReferences) > 0 ||
		len(after.Annotations) != 1 {
		t.Errorf("the Service is %+v", after.ObjectMeta)
	}
	labels, _, _ := unstructured.NestedStringMap(f.monitor().Object, "spec", "selector", "matchLabels")
	if len(labels) != 1 || labels["name"] != monitoring.Name {
		t.Errorf("the ServiceMonitor selects %v", labels)
	}
	if writes := f.look(); writes > 0 || len(f.said()) > 0 {
		t.Errorf("%d writes", writes)
	}
}

func TestObjectsOfOthersAreToldAndLeftAlone(t *testing.T) {
	ofHelm := map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	for name, c := range map[string]struct {
		object client.Object
		fill   func(object *unstructured.Unstructured)
		scrape bool // whether nodes are scraped all the same
	}{
		"a Service": {object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "mine"}},
			Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "mine"},
				Ports: []corev1.ServicePort{{Name: "metrics", Port: 9182}}}}},
		"a ServiceMonitor": {object: empty("ServiceMonitor"), fill: func(o *unstructured.Unstructured) {
			o.SetLabels(ofHelm)
			o.Object["spec"] = map[string]any{"selector": map[string]any{}, "endpoints": []any{map[string]any{"port": "mine"}}}
		}},
		"a PrometheusRule": {object: empty("PrometheusRule"), scrape: true, fill: func(o *unstructured.Unstructured) {
			o.Object["spec"] = map[string]any{"groups": []any{}}
		}},
		"Endpoints": {scrape: true, object: &corev1.Endpoints{ //nolint:staticcheck // Prometheus reads them
			ObjectMeta: metav1.ObjectMeta{Labels: ofHelm}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.node("win-a", "10.0.0.1")
			c.object.SetNamespace(f.namespace)
			c.object.SetName(monitoring.Name)
			if u, ok := c.object.(*unstructured.Unstructured); ok {
				c.fill(u)
				if u.GetKind() == "PrometheusRule" {
					u.SetName(monitoring.RulesName)
				}
			}
			f.create(c.object)
			version := c.object.GetResourceVersion()
			f.look()
			f.look()
			if said := f.said(); len(said) != 1 || !strings.HasPrefix(said[0], "Warning") ||
				!strings.Contains(said[0], f.namespace+"/"+c.object.GetName()+" is not the operator's") {
				t.Errorf("it is said %q", said)
			}
			must(t, f.admin.Get(t.Context(), client.ObjectKeyFromObject(c.object), c.object))
			if c.object.GetResourceVersion() != version {
				t.Errorf("it was changed to %+v", c.object)
			}
			if c.scrape && (f.monitor() == nil || len(f.slices()) != 1) {
				t.Error("nodes are not scraped")
			}
			must(t, f.admin.Delete(t.Context(), c.object))
			f.look()
			if said := f.said(); len(said) != 1 || !strings.HasPrefix(said[0], "Normal MonitoringEnabled") {
				t.Errorf("when it is gone, it is said %q", said)
			}
		})
	}
}

// A cluster without the prometheus-operator, and one that loses it. R-142
func TestKindsOfThePrometheusOperatorComeAndGo(t *testing.T) {
	f := newFixture(t)
	f.node("win-a", "10.0.0.1")
	f.look()
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "servicemonitors.monitoring.coreos.com"}}
	must(t, f.admin.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
	must(t, f.admin.Delete(t.Context(), definition.DeepCopy()))
	served := func(want bool) {
		f.await("the API server to follow", func(ctx context.Context) (bool, error) {
			err := f.admin.List(ctx, listOf("ServiceMonitor"))
			return want == (err == nil), nil
		})
	}
	served(false)
	f.await("it is said", func(context.Context) (bool, error) {
		f.look()
		return slices.ContainsFunc(f.said(), func(s string) bool {
			return strings.HasPrefix(s, "Warning MonitoringDisabled") && strings.Contains(s, "ServiceMonitor")
		}), nil
	})
	if got := f.listed(); len(got) != 1 || f.rules() == nil {
		t.Errorf("%v are listed", got)
	}
	if f.look(); len(f.said()) > 0 {
		t.Error("it is said again")
	}
	definition.ResourceVersion, definition.UID = "", ""
	must(t, f.admin.Create(t.Context(), definition))
	served(true)
	f.await("monitoring is on again", func(context.Context) (bool, error) {
		f.look()
		return slices.ContainsFunc(f.said(), func(s string) bool { return strings.HasPrefix(s, "Normal MonitoringEnabled") }), nil
	})
	if f.monitor() == nil {
		t.Error("there is no ServiceMonitor")
	}
}

func listOf(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind + "List"})
	return list
}

func TestWhatSomebodyChangesIsPutBack(t *testing.T) {
	f := newFixture(t)
	f.node("win-a", "10.0.0.1")
	f.look()
	monitor := f.monitor()
	must(t, unstructured.SetNestedField(monitor.Object, "other", "spec", "selector", "matchLabels", "name"))
	must(t, f.admin.Update(t.Context(), monitor))
	must(t, f.admin.Delete(t.Context(), f.rules()))
	slice := f.slices()[0]
	slice.Endpoints[0].Addresses = []string{"10.0.0.99"}
	must(t, f.admin.Update(t.Context(), &slice))
	f.look()
	labels, _, _ := unstructured.NestedStringMap(f.monitor().Object, "spec", "selector", "matchLabels")
	if labels["name"] != monitoring.Name || f.rules() == nil || !slices.Equal(f.listed(), []string{"win-a 10.0.0.1"}) {
		t.Errorf("the ServiceMonitor selects %v, %v are listed", labels, f.listed())
	}
}

//
func TestManyNodes(t *testing.T) {
	f := newFixture(t)
	f.Client = admins{f.Client, many{f.admin, 1001}}
	f.look()
	if got := f.slices(); len(got) != 11 {
		t.Errorf("1,001 nodes are in %d slices", len(got))
	}
	list := f.endpoints()
	if n := len(list.Subsets[0].Addresses); n != 1000 || list.Annotations[corev1.EndpointsOverCapacity] != "truncated" {
		t.Errorf("the Endpoints have %d addresses and annotations %v", n, list.Annotations)
	}
	if writes := f.look(); writes > 0 {
		t.Errorf("looked at again, there are %d writes", writes)
	}
	f.Client = admins{f.Client, many{f.admin, 999}}
	f.look()
	if list := f.endpoints(); len(list.Subsets[0].Addresses) != 999 || len(list.Annotations) > 0 {
		t.Errorf("with 999 the annotations are %v", list.Annotations)
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
