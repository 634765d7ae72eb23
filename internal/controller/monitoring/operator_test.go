package monitoring_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/deploy"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
)

// readMetricsService returns the Service of the operator's metrics from deploy/. The bundle has the same Service: see
// hack/bundle.
func readMetricsService(t *testing.T) *corev1.Service {
	t.Helper()
	data, err := deploy.Files.ReadFile("metrics.yaml")
	requireNoError(t, err)
	service := &corev1.Service{}
	requireNoError(t, yaml.UnmarshalStrict(data, service))
	return service
}

// getOperatorMonitor returns the ServiceMonitor of the operator's metrics.
func (f *fixture) getOperatorMonitor() *unstructured.Unstructured {
	return f.getObject("ServiceMonitor", v1alpha1.OperatorName)
}

// getDashboard returns the dashboard of the console; nil if it does not exist.
func (f *fixture) getDashboard() *corev1.ConfigMap {
	f.Helper()
	found := &corev1.ConfigMap{}
	err := f.admin.Get(f.Context(), client.ObjectKey{Namespace: monitoring.DashboardNamespace, Name: monitoring.DashboardName}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	requireNoError(f.T, err)
	return found
}

//
func TestReconcile_OperatorIsScraped(t *testing.T) {
	f := newFixture(t)
	f.reconcileAll()
	monitor, service := f.getOperatorMonitor(), readMetricsService(t)
	if monitor == nil {
		t.Fatal("there is no ServiceMonitor")
	}
	t.Run("by the Service that the installation has", func(t *testing.T) {
		selected, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
		for name, value := range selected {
			if service.Labels[name] != value {
				t.Errorf("it selects %v, the Service has %v", selected, service.Labels)
			}
		}
		if job, _, _ := unstructured.NestedString(monitor.Object, "spec", "jobLabel"); service.Labels[job] != v1alpha1.OperatorName {
			t.Errorf("the job is the Service's label %q", job)
		}
	})
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	endpoint, _ := endpoints[0].(map[string]any)
	t.Run("over HTTPS, with the token of Prometheus and the name in the certificate", func(t *testing.T) {
		tls, _ := endpoint["tlsConfig"].(map[string]any)
		if endpoint["scheme"] != "https" || endpoint["port"] != service.Spec.Ports[0].Name || endpoint["bearerTokenFile"] == nil ||
			tls["serverName"] != service.Name+"."+f.namespace+".svc" || tls["insecureSkipVerify"] == true {
			t.Errorf("it scrapes %v", endpoint)
		}
	})
	t.Run("and a second look writes nothing", func(t *testing.T) {
		if writes := f.reconcileAll(); writes > 0 {
			t.Errorf("%d writes", writes)
		}
	})
	t.Run("only while the namespace has the label", func(t *testing.T) {
		f.setMonitoringLabel("null")
		defer f.setMonitoringLabel(`"true"`)
		f.reconcileAll()
		if f.getOperatorMonitor() != nil {
			t.Error("the ServiceMonitor stays")
		}
	})
}

func TestReconcile_CreatesConsoleDashboard(t *testing.T) {
	f := newFixture(t)
	f.reconcileAll()
	shown := f.getDashboard()
	if shown == nil || shown.Labels["console.openshift.io/dashboard"] != "true" || len(shown.Data) != 1 {
		t.Fatalf("there is %+v", shown)
	}
	t.Run("that is Grafana's JSON with rows", func(t *testing.T) {
		var parsed struct{ Rows []struct{ Panels []any } }
		for name, data := range shown.Data {
			if err := json.Unmarshal([]byte(data), &parsed); err != nil || len(parsed.Rows) != 3 || !strings.HasSuffix(name, ".json") {
				t.Errorf("%s has %d rows, error %v", name, len(parsed.Rows), err)
			}
		}
	})
	t.Run("that goes with the operator's namespace", func(t *testing.T) {
		namespace := &corev1.Namespace{}
		requireNoError(t, f.admin.Get(t.Context(), client.ObjectKey{Name: f.namespace}, namespace))
		if !slices.ContainsFunc(shown.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == namespace.UID }) {
			t.Errorf("its owners are %v", shown.OwnerReferences)
		}
	})
	t.Run("that is put back when somebody changes it", func(t *testing.T) {
		changed := shown.DeepCopy()
		changed.Data = nil
		requireNoError(t, f.admin.Update(t.Context(), changed))
		if f.reconcileAll(); fmt.Sprint(f.getDashboard().Data) != fmt.Sprint(shown.Data) {
			t.Error("it stays changed")
		}
	})
	t.Run("and that goes with the label", func(t *testing.T) {
		f.setMonitoringLabel("null")
		defer f.setMonitoringLabel(`"true"`)
		if f.reconcileAll(); f.getDashboard() != nil {
			t.Error("it stays")
		}
	})
	t.Run("but one of somebody else stays as it is, and nodes are monitored", func(t *testing.T) {
		f.createObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: monitoring.DashboardNamespace,
			Name: monitoring.DashboardName}, Data: map[string]string{"theirs": "{}"}})
		f.drainEvents()
		f.reconcileAll()
		events := f.drainEvents()
		if f.getDashboard().Data["theirs"] == "" || f.getServiceMonitor() == nil || len(events) != 1 ||
			!strings.Contains(events[0], "ObjectConflict ConfigMap openshift-config-managed/dashboard-windows-nodes") {
			t.Errorf("it is said %q", events)
		}
	})
}
