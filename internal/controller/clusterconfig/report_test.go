package clusterconfig

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

const (
	namespace, olmName = "wmco", "windows-machine-config-operator.v12.0.0"
	// deploymentName is the name of the operator's Deployment, which the events are about.
	deploymentName = "windows-machine-config-operator"
)

var (
	good = nodespec.Cluster{Platform: "AWS", Version: "5.0.3", Network: nodespec.ClusterNetwork{Type: "OVNKubernetes",
		HybridOverlay: true}}
	sdn = nodespec.Cluster{Platform: "AWS", Version: "5.0.3", Network: nodespec.ClusterNetwork{Type: "OpenShiftSDN"}}
	old = nodespec.Cluster{Platform: "AWS", Version: "4.6.7", Network: nodespec.ClusterNetwork{Type: "OVNKubernetes",
		HybridOverlay: true}}
)

// trial is a Reporter with its events.
type trial struct {
	*Reporter
	client   client.WithWatch
	recorder *events.FakeRecorder
}

func newTrial(t *testing.T, objects ...client.Object) *trial {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorcondition.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	recorder := events.NewFakeRecorder(10)
	return &trial{NewReporter(c, recorder, operatorcondition.NewWriter(c, c, namespace, olmName), namespace,
		support.CurrentLine()), c, recorder}
}

func newOperatorCondition() client.Object {
	return &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: olmName}}
}

// reportResult passes the result of a read to the Reporter and returns the emitted events.
func (r *trial) reportResult(t *testing.T, facts nodespec.Cluster, err error) []string {
	t.Helper()
	if err := r.reportSupport(t.Context(), r.evaluateSupport(facts, err)); err != nil {
		t.Fatal(err)
	}
	var recorded []string
	for len(r.recorder.Events) > 0 {
		recorded = append(recorded, <-r.recorder.Events)
	}
	return recorded
}

// supportCondition returns the condition that OLM reads.
func (r *trial) supportCondition(t *testing.T) metav1.Condition {
	t.Helper()
	object := &operatorsv2.OperatorCondition{}
	if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: olmName}, object); err != nil {
		t.Fatal(err)
	}
	found := meta.FindStatusCondition(object.Spec.Conditions, operatorcondition.ClusterSupported)
	if found == nil {
		t.Fatal("there is no condition ClusterSupported")
	}
	return *found
}

func expectEvents(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("events %q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("event %q, want %q", got[i], want[i])
		}
	}
}

// expectMetric expects exactly one series.
func expectMetric(t *testing.T, reason string, value float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "wmco_cluster_supported" })
	series := families[i].GetMetric()
	if len(series) != 1 || series[0].GetGauge().GetValue() != value || series[0].GetLabel()[0].GetValue() != reason {
		t.Errorf("the metric is %s, want %v for %s", series, value, reason)
	}
}

//
func TestReportSupport_UnsupportedClusterReported(t *testing.T) {
	fault := &cluster.Error{Object: "Infrastructure cluster", Message: "it does not exist."}
	t.Run("a cluster that is supported from the beginning is worth no event", func(t *testing.T) {
		r := newTrial(t, newOperatorCondition())
		expectEvents(t, r.reportResult(t, good, nil))
		if got := r.supportCondition(t); got.Status != metav1.ConditionTrue || got.Reason != v1alpha1.ReasonSucceeded ||
			!strings.Contains(got.Message, "5.0.3") {
			t.Errorf("condition %+v", got)
		}
		expectMetric(t, v1alpha1.ReasonSucceeded, 1)
	})
	t.Run("one that is not is reported once, and once more when it is mended", func(t *testing.T) {
		r := newTrial(t, newOperatorCondition())
		expectEvents(t, r.reportResult(t, sdn, nil), "Warning NetworkUnsupported The cluster's network is \"OpenShiftSDN\".")
		expectEvents(t, r.reportResult(t, sdn, nil))
		if got := r.supportCondition(t); got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonNetworkUnsupported {
			t.Errorf("condition %+v", got)
		}
		expectEvents(t, r.reportResult(t, good, nil), "Normal ClusterSupported OpenShift 5.0.3")
		expectEvents(t, r.reportResult(t, good, nil))
		if got := r.supportCondition(t); got.Status != metav1.ConditionTrue {
			t.Errorf("condition %+v", got)
		}
		expectEvents(t, r.reportResult(t, sdn, nil), "Warning NetworkUnsupported")
	})
	t.Run("another reason is reported again", func(t *testing.T) {
		r := newTrial(t, newOperatorCondition())
		expectEvents(t, r.reportResult(t, nodespec.Cluster{}, fault),
			"Warning ClusterConfigurationInvalid The cluster's configuration cannot be used: Infrastructure cluster")
		expectEvents(t, r.reportResult(t, old, nil), "Warning ClusterVersionUnsupported")
		expectEvents(t, r.reportResult(t, sdn, nil), "Warning NetworkUnsupported")
	})
	t.Run("a cluster newer than the tested versions is served, with a warning", func(t *testing.T) {
		r, newer := newTrial(t, newOperatorCondition()), good
		newer.Version = "5.2.0"
		expectEvents(t, r.reportResult(t, newer, nil), "Warning ClusterVersionUntested The cluster is OpenShift 5.2.0")
		expectEvents(t, r.reportResult(t, newer, nil))
		if got := r.supportCondition(t); got.Status != metav1.ConditionTrue || got.Reason != v1alpha1.ReasonClusterVersionUntested {
			t.Errorf("condition %+v", got)
		}
		expectMetric(t, v1alpha1.ReasonClusterVersionUntested, 1)
		expectEvents(t, r.reportResult(t, good, nil), "Normal ClusterSupported")
	})
	t.Run("the metric has one series", func(t *testing.T) {
		r := newTrial(t, newOperatorCondition())
		r.reportResult(t, old, nil)
		r.reportResult(t, sdn, nil)
		expectMetric(t, v1alpha1.ReasonNetworkUnsupported, 0)
	})
	t.Run("a Deployment that cannot be read now is asked again, and then told", func(t *testing.T) {
		r := newTrial(t, newOperatorCondition())
		failure := errors.New("connection refused")
		r.live = interceptor.NewClient(r.client, interceptor.Funcs{Get: func(context.Context, client.WithWatch,
			client.ObjectKey, client.Object, ...client.GetOption) error {
			return failure
		}})
		if err := r.reportSupport(t.Context(), r.evaluateSupport(sdn, nil)); !errors.Is(err, failure) {
			t.Errorf("error is %v", err)
		}
		r.live = r.client
		expectEvents(t, r.reportResult(t, sdn, nil), "Warning NetworkUnsupported")
	})
	t.Run("an OperatorCondition that is not there keeps the event from nobody", func(t *testing.T) {
		r := newTrial(t)
		if err := r.reportSupport(t.Context(), r.evaluateSupport(sdn, nil)); err == nil || len(r.recorder.Events) != 1 {
			t.Errorf("error %v, %d events", err, len(r.recorder.Events))
		}
	})
}
