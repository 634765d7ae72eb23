package monitoring

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

// lab/prometheus reads both files with the real Prometheus.
func TestRules_MatchTestdataOfPrometheusLab(t *testing.T) {
	for name, spec := range map[string]map[string]any{
		"operatormonitor.yaml": operatorMonitorSpec("openshift-windows-machine-config-operator"),
		"rules.yaml":           rulesSpec("openshift-windows-machine-config-operator"),
		"servicemonitor.yaml":  serviceMonitorSpec("openshift-windows-machine-config-operator"),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("..", "..", "..", "lab", "prometheus", "testdata", name)
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || string(got) != string(want) {
				t.Errorf("%s differs (error %v): run go test with -update, and then the tests of lab/prometheus", path, err)
			}
		})
	}
}

func TestDashboard_MatchesTestdataOfPrometheusLab(t *testing.T) {
	path := filepath.Join("..", "..", "..", "lab", "prometheus", "testdata", "dashboard.json")
	if *update {
		if err := os.WriteFile(path, consoleDashboard(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(consoleDashboard()) != string(want) {
		t.Errorf("%s differs (error %v): run go test with -update, and then the tests of lab/prometheus", path, err)
	}
}

func TestRules_RecordNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range recordingRules() {
		if seen[r.record] {
			t.Errorf("two rules record %s", r.record)
		}
		seen[r.record] = true
	}
}
