package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
)

//
func TestReconcile_NodesScrapedWhileInService(t *testing.T) {
	f := newFixture(t)
	f.reconcileAll()
	if got := f.listedAddresses(); len(got) > 0 || f.getServiceMonitor() == nil || f.getRules() == nil {
		t.Fatalf("without nodes %v are listed", got)
	}
	f.createNode("win-a", "10.0.0.1")
	instance := f.createNode("win-b", "10.0.0.2")
	both := []string{"win-a 10.0.0.1", "win-b 10.0.0.2"}
	f.reconcileAll()
	if got := f.listedAddresses(); !slices.Equal(got, both) {
		t.Fatalf("%v are listed", got)
	}
	t.Run("a look at what is right writes nothing", func(t *testing.T) {
		if writes := f.reconcileAll(); writes > 0 {
			t.Errorf("%d writes", writes)
		}
	})
	t.Run("nor does another process of the operator, which takes nothing away", func(t *testing.T) {
		f.start()
		if writes := f.reconcileAll(); writes > 0 || !slices.Equal(f.listedAddresses(), both) {
			t.Errorf("%d writes", writes)
		}
	})
	t.Run("no event says what was well from the beginning", func(t *testing.T) {
		if events := f.drainEvents(); len(events) > 0 {
			t.Errorf("%v", events)
		}
	})
	t.Run("one that leaves is taken out when it is drained, before its Node goes", func(t *testing.T) {
		instance.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		requireNoError(t, f.admin.Update(t.Context(), instance))
		if writes := f.reconcileAll(); writes != 0 {
			t.Errorf("%d writes before it is drained", writes)
		}
		node := &corev1.Node{}
		requireNoError(t, f.admin.Get(t.Context(), client.ObjectKey{Name: "win-b"}, node))
		before := node.DeepCopy()
		node.Spec.Unschedulable = true
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[v1alpha1.AnnotationCordoned], node.Annotations[v1alpha1.AnnotationDrained] = "a time", "a time"
		requireNoError(t, f.admin.Patch(t.Context(), node, client.MergeFrom(before)))
		if writes := f.reconcileAll(); writes != 1 || !slices.Equal(f.listedAddresses(), both[:1]) {
			t.Errorf("after %d writes %v are listed", writes, f.listedAddresses())
		}
	})
	t.Run("the last one leaves no slice", func(t *testing.T) {
		requireNoError(t, f.admin.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}}))
		if f.reconcileAll(); len(f.listSlices()) > 0 || len(f.listedAddresses()) > 0 {
			t.Errorf("%v", f.listSlices())
		}
	})
}

// Nodes change frequently, and hundreds change at once when a fleet joins.
func TestReconcile_NodeChangeCostsFewRequests(t *testing.T) {
	f := newFixture(t)
	if reads, writes := f.reconcileAddresses(); reads+writes > 0 {
		t.Errorf("before the first look at everything there are %d reads and %d writes", reads, writes)
	}
	f.reconcileAll()
	f.createNode("win-a", "10.0.0.1")
	t.Run("a node that comes into service is a read and a write of the slices", func(t *testing.T) {
		if reads, writes := f.reconcileAddresses(); reads != 1 || writes != 1 || !slices.Equal(f.listedAddresses(), []string{"win-a 10.0.0.1"}) {
			t.Errorf("%d reads, %d writes: %v are listed", reads, writes, f.listedAddresses())
		}
	})
	t.Run("a change that leaves all addresses as they are costs nothing", func(t *testing.T) {
		if reads, writes := f.reconcileAddresses(); reads+writes > 0 {
			t.Errorf("%d reads, %d writes", reads, writes)
		}
	})
	for address, refusal := range map[string]error{
		"10.0.0.5": apierrors.NewConflict(discoveryv1.Resource("endpointslices"), monitoring.Name, errors.New("it was written")),
		"10.0.0.6": apierrors.NewServiceUnavailable("it restarts"),
	} {
		t.Run("an address is written soon whose write failed because "+refusal.Error(), func(t *testing.T) {
			f.createNode("win-"+address, address)
			f.refuse = func(client.Object) error { return refusal }
			result, err := f.Reconcile(t.Context(), onlyAddresses)
			f.refuse = nil
			if err == nil && (result.RequeueAfter == 0 || result.RequeueAfter > time.Second) {
				t.Errorf("it is tried again after %s", result.RequeueAfter)
			}
			if _, writes := f.reconcileAddresses(); writes == 0 || !slices.Contains(f.listedAddresses(), "win-"+address+" "+address) {
				t.Errorf("%d writes: %v are listed", writes, f.listedAddresses())
			}
		})
	}
	t.Run("what others take away, the next look at everything puts back", func(t *testing.T) {
		requireNoError(t, f.admin.DeleteAllOf(t.Context(), &discoveryv1.EndpointSlice{}, client.InNamespace(f.namespace)))
		if writes := f.reconcileAll(); writes != 1 || len(f.listSlices()) != 1 {
			t.Errorf("%d writes, %d slices", writes, len(f.listSlices()))
		}
	})
	t.Run("while the Service is not the operator's, no address is written", func(t *testing.T) {
		service := &corev1.Service{}
		requireNoError(t, f.admin.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: monitoring.Name}, service))
		service.Labels["app.kubernetes.io/managed-by"] = "another"
		requireNoError(t, f.admin.Update(t.Context(), service))
		f.reconcileAll()
		f.createNode("win-b", "10.0.0.2")
		if reads, writes := f.reconcileAddresses(); reads+writes > 0 {
			t.Errorf("%d reads, %d writes", reads, writes)
		}
	})
}

//
func TestReconcile_ObjectsFitPrometheus(t *testing.T) {
	f := newFixture(t)
	f.reconcileAll()
	service := &corev1.Service{}
	requireNoError(t, f.admin.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "windows-exporter"}, service))
	if service.Annotations["service.beta.openshift.io/serving-cert-secret-name"] != "windows-machine-config-operator-tls" ||
		service.Labels["name"] != "windows-exporter" || len(service.Spec.Selector) > 0 ||
		len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Name != "metrics" || service.Spec.Ports[0].Port != 9182 {
		t.Errorf("the Service is %+v", service)
	}
	for _, name := range []string{monitoring.Name, v1alpha1.OperatorName} {
		role, _, _ := unstructured.NestedString(f.getObject("ServiceMonitor", name).Object, "spec", "serviceDiscoveryRole")
		if role != "EndpointSlice" {
			t.Errorf("by ServiceMonitor %s Prometheus reads %q", name, role)
		}
	}
	spec, _, _ := unstructured.NestedSlice(f.getServiceMonitor().Object, "spec", "endpoints")
	endpoint, _ := spec[0].(map[string]any)
	tls, _ := endpoint["tlsConfig"].(map[string]any)
	if endpoint["scheme"] != "https" || endpoint["port"] != "metrics" || endpoint["honorLabels"] == true ||
		tls["serverName"] != "windows-exporter."+f.namespace+".svc" || tls["insecureSkipVerify"] == true ||
		!strings.HasSuffix(fmt.Sprint(tls["caFile"]), "/service-ca.crt") ||
		tls["certFile"] != "/etc/prometheus/secrets/metrics-client-certs/tls.crt" ||
		tls["keyFile"] != "/etc/prometheus/secrets/metrics-client-certs/tls.key" {
		t.Errorf("the ServiceMonitor scrapes %v", endpoint)
	}
}

//
func TestReconcile_NamespaceLabelEnablesMonitoring(t *testing.T) {
	f := newFixture(t)
	f.setMonitoringLabel("null")
	f.createNode("win-a", "10.0.0.1")
	f.reconcileAll()
	events := f.drainEvents()
	if len(events) != 1 || !strings.HasPrefix(events[0], "Warning MonitoringDisabled") ||
		!strings.Contains(events[0], "oc label namespace "+f.namespace+" "+monitoringLabel+"=true") {
		t.Errorf("it is said %q", events)
	}
	if f.getServiceMonitor() != nil || f.getRules() != nil {
		t.Error("there is a ServiceMonitor or a PrometheusRule")
	}
	if got := f.listedAddresses(); len(got) != 1 {
		t.Errorf("%v are listed", got)
	}
	if writes := f.reconcileAll(); writes > 0 || len(f.drainEvents()) > 0 {
		t.Errorf("%d writes", writes)
	}
	f.setMonitoringLabel(`"true"`)
	f.reconcileAll()
	if recorded := f.drainEvents(); len(recorded) != 1 || !strings.HasPrefix(recorded[0], "Normal MonitoringEnabled") {
		t.Errorf("it is said %q", recorded)
	}
	if f.getServiceMonitor() == nil || f.getRules() == nil {
		t.Fatal("there is no ServiceMonitor or no PrometheusRule")
	}
	f.setMonitoringLabel(`"false"`)
	f.reconcileAll()
	if f.getServiceMonitor() != nil || f.getRules() != nil || len(f.listedAddresses()) != 1 {
		t.Error("the ServiceMonitor or the PrometheusRule stays")
	}
}

// The operator adopts the objects of a legacy operator, including wrong addresses.
func TestReconcile_AdoptsLegacyObjects(t *testing.T) {
	f := newFixture(t)
	f.createNode("win-a", "10.0.0.1")
	csv := metav1.OwnerReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion",
		Name: "windows-machine-config-operator.v11.0.0", UID: "gone"}
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: monitoring.Name, Labels: map[string]string{"name": monitoring.Name}}
	service := &corev1.Service{ObjectMeta: *meta.DeepCopy(), Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Name: "metrics", Port: 9182}}}}
	service.Annotations = map[string]string{
		"service.alpha.openshift.io/serving-cert-secret-name": "windows-machine-config-operator-tls"}
	list := &corev1.Endpoints{ObjectMeta: *meta.DeepCopy(), //nolint:staticcheck // earlier releases made them
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // earlier releases made them
			Addresses: []corev1.EndpointAddress{{IP: "10.0.0.99", TargetRef: &corev1.ObjectReference{Kind: "Node", Name: "gone"}}},
			Ports:     []corev1.EndpointPort{{Name: "metrics", Port: 9182}},
		}}}
	monitor := newUnstructured("ServiceMonitor")
	monitor.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"k8s-app": "kubelet"}},
		"endpoints": []any{map[string]any{"port": "https-metrics", "scheme": "https",
			"tlsConfig": map[string]any{"serverName": "windows-exporter." + f.namespace + ".svc"}}},
	}
	recorded := newUnstructured("PrometheusRule")
	recorded.Object["spec"] = map[string]any{"groups": []any{map[string]any{"name": "windows.rules",
		"rules": []any{map[string]any{"record": "node_cpu_info", "expr": "windows_cpu_info"}}}}}
	monitor.SetName(monitoring.Name)
	recorded.SetName(monitoring.RulesName)
	for _, object := range []client.Object{monitor, recorded} {
		object.SetNamespace(f.namespace)
	}
	f.createObjects(service, list, monitor, recorded)
	f.waitUntil("Kubernetes has made a slice of the older operator's Endpoints", func(context.Context) (bool, error) {
		return len(f.listSlices()) == 1, nil
	})
	service.OwnerReferences = []metav1.OwnerReference{csv}
	requireNoError(t, f.admin.Update(t.Context(), service))
	f.reconcileAll()
	requireNoError(t, f.admin.Get(t.Context(), client.ObjectKeyFromObject(list), list)) // Prometheus may still read it
	f.reconcileAll()
	f.waitUntil("Kubernetes has deleted its slice", func(context.Context) (bool, error) { return len(f.listSlices()) == 1, nil })
	if got := f.listedAddresses(); !slices.Equal(got, []string{"win-a 10.0.0.1"}) {
		t.Errorf("%v are listed", got)
	}
	after := &corev1.Service{}
	requireNoError(t, f.admin.Get(t.Context(), client.ObjectKeyFromObject(service), after))
	if after.UID != service.UID || after.Spec.ClusterIP != service.Spec.ClusterIP || len(after.OwnerReferences) > 0 ||
		len(after.Annotations) != 1 {
		t.Errorf("the Service is %+v", after.ObjectMeta)
	}
	labels, _, _ := unstructured.NestedStringMap(f.getServiceMonitor().Object, "spec", "selector", "matchLabels")
	if len(labels) != 1 || labels["name"] != monitoring.Name {
		t.Errorf("the ServiceMonitor selects %v", labels)
	}
	if writes := f.reconcileAll(); writes > 0 || len(f.drainEvents()) > 0 {
		t.Errorf("%d writes", writes)
	}
}

func TestReconcile_ForeignObjectReportedAndUnchanged(t *testing.T) {
	ofHelm := map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	for name, c := range map[string]struct {
		object client.Object
		fill   func(object *unstructured.Unstructured)
		scrape bool // whether nodes are scraped nonetheless
	}{
		"a Service": {object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "mine"}},
			Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "mine"},
				Ports: []corev1.ServicePort{{Name: "metrics", Port: 9182}}}}},
		"a ServiceMonitor": {object: newUnstructured("ServiceMonitor"), fill: func(o *unstructured.Unstructured) {
			o.SetLabels(ofHelm)
			o.Object["spec"] = map[string]any{"selector": map[string]any{}, "endpoints": []any{map[string]any{"port": "mine"}}}
		}},
		"a PrometheusRule": {object: newUnstructured("PrometheusRule"), scrape: true, fill: func(o *unstructured.Unstructured) {
			o.Object["spec"] = map[string]any{"groups": []any{}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createNode("win-a", "10.0.0.1")
			c.object.SetNamespace(f.namespace)
			c.object.SetName(monitoring.Name)
			if u, ok := c.object.(*unstructured.Unstructured); ok {
				c.fill(u)
				if u.GetKind() == "PrometheusRule" {
					u.SetName(monitoring.RulesName)
				}
			}
			f.createObjects(c.object)
			version := c.object.GetResourceVersion()
			f.reconcileAll()
			f.reconcileAll()
			if said := f.drainEvents(); len(said) != 1 || !strings.HasPrefix(said[0], "Warning") ||
				!strings.Contains(said[0], f.namespace+"/"+c.object.GetName()+" was not created by the operator") {
				t.Errorf("it is said %q", said)
			}
			requireNoError(t, f.admin.Get(t.Context(), client.ObjectKeyFromObject(c.object), c.object))
			if c.object.GetResourceVersion() != version {
				t.Errorf("it was changed to %+v", c.object)
			}
			if c.scrape && (f.getServiceMonitor() == nil || len(f.listSlices()) != 1) {
				t.Error("nodes are not scraped")
			}
			requireNoError(t, f.admin.Delete(t.Context(), c.object))
			f.reconcileAll()
			if events := f.drainEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Normal MonitoringEnabled") {
				t.Errorf("when it is gone, it is said %q", events)
			}
		})
	}
}

// A cluster without the prometheus-operator, and a cluster that loses the prometheus-operator. R-142
func TestReconcile_FollowsKindsOfPrometheusOperator(t *testing.T) {
	f := newFixture(t)
	f.createNode("win-a", "10.0.0.1")
	f.reconcileAll()
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "servicemonitors.monitoring.coreos.com"}}
	requireNoError(t, f.admin.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
	requireNoError(t, f.admin.Delete(t.Context(), definition.DeepCopy()))
	served := func(want bool) {
		f.waitUntil("the API server to follow", func(ctx context.Context) (bool, error) {
			err := f.admin.List(ctx, listOf("ServiceMonitor"))
			return want == (err == nil), nil
		})
	}
	served(false)
	f.waitUntil("it is said", func(context.Context) (bool, error) {
		f.reconcileAll()
		return slices.ContainsFunc(f.drainEvents(), func(s string) bool {
			return strings.HasPrefix(s, "Warning MonitoringDisabled") && strings.Contains(s, "ServiceMonitor")
		}), nil
	})
	if got := f.listedAddresses(); len(got) != 1 || f.getRules() == nil {
		t.Errorf("%v are listed", got)
	}
	if f.reconcileAll(); len(f.drainEvents()) > 0 {
		t.Error("it is said again")
	}
	definition.ResourceVersion, definition.UID = "", ""
	requireNoError(t, f.admin.Create(t.Context(), definition))
	served(true)
	f.waitUntil("monitoring is on again", func(context.Context) (bool, error) {
		f.reconcileAll()
		return slices.ContainsFunc(f.drainEvents(), func(s string) bool { return strings.HasPrefix(s, "Normal MonitoringEnabled") }), nil
	})
	if f.getServiceMonitor() == nil {
		t.Error("there is no ServiceMonitor")
	}
}

func listOf(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind + "List"})
	return list
}

func TestReconcile_RevertsForeignChanges(t *testing.T) {
	f := newFixture(t)
	f.createNode("win-a", "10.0.0.1")
	f.reconcileAll()
	monitor := f.getServiceMonitor()
	requireNoError(t, unstructured.SetNestedField(monitor.Object, "other", "spec", "selector", "matchLabels", "name"))
	requireNoError(t, f.admin.Update(t.Context(), monitor))
	requireNoError(t, f.admin.Delete(t.Context(), f.getRules()))
	slice := f.listSlices()[0]
	slice.Endpoints[0].Addresses = []string{"10.0.0.99"}
	requireNoError(t, f.admin.Update(t.Context(), &slice))
	f.reconcileAll()
	labels, _, _ := unstructured.NestedStringMap(f.getServiceMonitor().Object, "spec", "selector", "matchLabels")
	if labels["name"] != monitoring.Name || f.getRules() == nil || !slices.Equal(f.listedAddresses(), []string{"win-a 10.0.0.1"}) {
		t.Errorf("the ServiceMonitor selects %v, %v are listed", labels, f.listedAddresses())
	}
}

//
func TestReconcile_ManyNodesSplitIntoSlices(t *testing.T) {
	f := newFixture(t)
	f.Client = admins{f.Client, many{f.admin, 1001}}
	f.reconcileAll()
	if got := f.listSlices(); len(got) != 11 {
		t.Errorf("1,001 nodes are in %d slices", len(got))
	}
	if writes := f.reconcileAll(); writes > 0 {
		t.Errorf("looked at again, there are %d writes", writes)
	}
}
