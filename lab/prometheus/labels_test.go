package prometheus

import (
	"os"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"sigs.k8s.io/yaml"
)

const monitorFile = "testdata/servicemonitor.yaml"

// relabeling is one of a ServiceMonitor. The prometheus-operator gives it to Prometheus as it is.
type relabeling struct {
	Action, Regex, Replacement, Separator, TargetLabel string
	SourceLabels                                       []string
}

func (r relabeling) config() *relabel.Config {
	c := relabel.DefaultRelabelConfig
	c.Action, c.Regex, c.TargetLabel = relabel.Action(r.Action), relabel.MustNewRegexp(r.Regex), r.TargetLabel
	if r.Replacement != "" {
		c.Replacement = r.Replacement
	}
	for _, name := range r.SourceLabels {
		c.SourceLabels = append(c.SourceLabels, model.LabelName(name))
	}
	return &c
}

// relabeled returns labels as Prometheus makes them of others by a list of the ServiceMonitor.
func relabeled(t *testing.T, list string, before map[string]string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(monitorFile)
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Endpoints []map[string]any
	}
	if err := yaml.Unmarshal(data, &spec); err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.Marshal(spec.Endpoints[0][list])
	if err != nil {
		t.Fatal(err)
	}
	var relabelings []relabeling
	if err := yaml.Unmarshal(raw, &relabelings); err != nil || len(relabelings) == 0 {
		t.Fatalf("%d relabelings, error %v", len(relabelings), err)
	}
	var configs []*relabel.Config
	for _, r := range relabelings {
		configs = append(configs, r.config())
	}
	after, _ := relabel.Process(labels.FromMap(before), configs...)
	return after.Map()
}

//
func TestTheInstanceOfATargetIsItsNode(t *testing.T) {
	got := relabeled(t, "relabelings", map[string]string{"__address__": "10.0.0.1:9182", "instance": "10.0.0.1:9182", "node": "win-a"})
	if got["instance"] != "win-a" {
		t.Errorf("the labels are %v", got)
	}
}

// The exporter's label namespace becomes exported_namespace, because the target has one.
func TestASeriesOfAContainerIsOfTheNamespaceOfItsPod(t *testing.T) {
	const own = "openshift-windows-machine-config-operator"
	for name, want := range map[string]string{"windows_container_cpu_usage_seconds_total": "shop", "windows_made_up": own} {
		got := relabeled(t, "metricRelabelings", map[string]string{"__name__": name, "namespace": own,
			"exported_namespace": "shop", "pod": "web-1"})
		if _, left := got["exported_namespace"]; left || got["namespace"] != want || got["pod"] != "web-1" {
			t.Errorf("the labels are %v", got)
		}
	}
}
