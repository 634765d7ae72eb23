package metrics

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func unixTime(seconds int64) metav1.Time { return metav1.NewTime(time.Unix(seconds, 0)) }

func newInstance(name string, status v1alpha1.WindowsInstanceStatus) *v1alpha1.WindowsInstance {
	return &v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: name, CreationTimestamp: unixTime(1000)},
		Spec:       v1alpha1.WindowsInstanceSpec{DesiredState: v1alpha1.DesiredStateNode}, Status: status,
	}
}

// serveInstances runs Instances for some objects, and returns a function that stops Instances.
func serveInstances(t *testing.T, objects ...client.Object) (api client.Client, end func()) {
	t.Helper()
	scheme := kuberuntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	ctx, cancel := context.WithCancel(t.Context())
	i, done := &Instances{Client: api, Namespace: "wmco"}, make(chan error)
	go func() { done <- i.Start(ctx) }()
	for serving.Load() != i {
		runtime.Gosched()
	}
	return api, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// expectMetrics compares some metrics with the result of a scrape.
func expectMetrics(t *testing.T, want string, names ...string) {
	t.Helper()
	var lines []string
	for line := range strings.SplitSeq(want, "\n") {
		lines = append(lines, strings.TrimSpace(line))
	}
	got, err := testutil.CollectAndFormat(instancesCollector{}, expfmt.TypeTextPlain, names...)
	if err != nil {
		t.Fatal(err)
	}
	var series []string
	for line := range strings.SplitSeq(string(got), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			series = append(series, line)
		}
	}
	if got, want := strings.Join(series, "\n"), strings.TrimSpace(strings.Join(lines, "\n")); got != want {
		t.Errorf("a scrape gets\n%s\nwant\n%s", got, want)
	}
}

func TestInstances_EachHasOwnSeries(t *testing.T) {
	removed := newInstance("c", v1alpha1.WindowsInstanceStatus{Summary: "Removing"})
	removed.Spec.DesiredState = v1alpha1.DesiredStateRemoved
	elsewhere := newInstance("d", v1alpha1.WindowsInstanceStatus{})
	elsewhere.Namespace = "other"
	api, end := serveInstances(t, removed, elsewhere,
		newInstance("a", v1alpha1.WindowsInstanceStatus{Summary: "HostKeyChanged", Version: "12.0.0", DisruptionPending: true,
			NodeRef:   &v1alpha1.NodeReference{Name: "win-a", Confirmed: true},
			Readiness: &v1alpha1.Readiness{Ready: true, Since: unixTime(2000)},
			Certificates: []v1alpha1.CertificateStatus{{Name: "cloud-node-manager", NotAfter: unixTime(5000),
				RenewAt: unixTime(4000)}}}),
		newInstance("b", v1alpha1.WindowsInstanceStatus{Summary: "StepFailed",
			NodeRef: &v1alpha1.NodeReference{Name: "claimed"}}),
	)
	defer end()
	t.Run("its node, its version and what it should be", func(t *testing.T) {
		expectMetrics(t, `wmco_instance_info{desired_state="Node",name="a",node="win-a",version="12.0.0"} 1
			wmco_instance_info{desired_state="Node",name="b",node="",version=""} 1
			wmco_instance_info{desired_state="Removed",name="c",node="",version=""} 1`, "wmco_instance_info")
	})
	t.Run("whether its node works, and what stands in the way", func(t *testing.T) {
		expectMetrics(t, `wmco_instance_ready{name="a"} 1
			wmco_instance_ready{name="b"} 0
			wmco_instance_ready{name="c"} 0
			wmco_instance_status{name="a",reason="HostKeyChanged"} 1
			wmco_instance_status{name="b",reason="StepFailed"} 1
			wmco_instance_status{name="c",reason="Removing"} 1`, "wmco_instance_ready", "wmco_instance_status")
	})
	t.Run("since when it should be Ready and is not", func(t *testing.T) {
		expectMetrics(t, `wmco_instance_not_ready_since_timestamp_seconds{name="b",reason="StepFailed"} 1000`,
			"wmco_instance_not_ready_since_timestamp_seconds")
	})
	t.Run("whether it waits for its turn", func(t *testing.T) {
		expectMetrics(t, `wmco_instance_disruption_pending{name="a"} 1
			wmco_instance_disruption_pending{name="b"} 0
			wmco_instance_disruption_pending{name="c"} 0`, "wmco_instance_disruption_pending")
	})
	t.Run("until when its certificates are valid", func(t *testing.T) {
		expectMetrics(t, `wmco_certificate_expiry_timestamp_seconds{certificate="cloud-node-manager",name="a"} 5000
			wmco_certificate_renewal_timestamp_seconds{certificate="cloud-node-manager",name="a"} 4000`,
			"wmco_certificate_expiry_timestamp_seconds", "wmco_certificate_renewal_timestamp_seconds")
	})
	t.Run("and none when it is gone", func(t *testing.T) {
		for _, name := range []string{"a", "b"} {
			if err := api.Delete(t.Context(), newInstance(name, v1alpha1.WindowsInstanceStatus{})); err != nil {
				t.Fatal(err)
			}
		}
		expectMetrics(t, `wmco_instance_ready{name="c"} 0`, "wmco_instance_ready")
	})
	t.Run("nor after the operator has ended", func(t *testing.T) {
		end()
		expectMetrics(t, "", "wmco_instance_ready")
	})
}

func TestStateGauge_HasOneSeries(t *testing.T) {
	MonitoringEnabled.Set(false, "NamespaceNotLabeled")
	MonitoringEnabled.Set(true, "MonitoringEnabled")
	want := "# HELP wmco_monitoring_enabled 1 if the cluster's Prometheus is configured to scrape Windows nodes, 0 " +
		"otherwise; the label reason is the cause.\n# TYPE wmco_monitoring_enabled gauge\nwmco_monitoring_enabled{reason=\"MonitoringEnabled\"} 1\n"
	if err := testutil.CollectAndCompare(MonitoringEnabled.vec, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
