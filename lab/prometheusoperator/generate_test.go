package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	// own is the namespace of the objects in testdata, which tests of the operator keep up to date.
	own = "openshift-windows-machine-config-operator"
	// testdata is the directory that the tests of Prometheus read.
	testdata = "../prometheus/testdata"
	golden   = testdata + "/prometheus.yaml"
)

var update = flag.Bool("update", false, "rewrite the configuration that the tests of lab/prometheus read")

// spec reads the spec of an object.
func spec(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testdata, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// made returns the objects that the operator creates.
func made(t *testing.T) objects {
	t.Helper()
	exporter := &monitoringv1.ServiceMonitor{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "windows-exporter"}}
	itself := &monitoringv1.ServiceMonitor{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "windows-machine-config-operator"}}
	rule := &monitoringv1.PrometheusRule{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "rules", UID: "1"}}
	spec(t, "servicemonitor.yaml", &exporter.Spec)
	spec(t, "operatormonitor.yaml", &itself.Spec)
	spec(t, "rules.yaml", &rule.Spec)
	return objects{monitors: []*monitoringv1.ServiceMonitor{exporter, itself}, rules: []*monitoringv1.PrometheusRule{rule}}
}

func TestGenerate_MatchesTestedConfiguration(t *testing.T) {
	files, err := made(t).generate(settings{apiServer: "https://api.lab.example.com:6443", root: "/pod"})
	if err != nil {
		t.Fatal(err)
	}
	got := files["/pod/etc/prometheus/config_out/prometheus.env.yaml"]
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs (error %v): run go test -update in this folder, and read the difference. It is\n%s", golden, err, got)
	}
	rules, ok := files["/pod/etc/prometheus/rules/prometheus-k8s-rulefiles-0/"+own+"-rules-1.yaml"]
	if !ok || len(files) != 2 || !bytes.Contains(rules, []byte("alert: WindowsExporterDown")) {
		t.Errorf("the rules are not where the configuration says: %s", rules)
	}
}

func TestGenerate_IntervalOverridesObjects(t *testing.T) {
	files, err := made(t).generate(settings{apiServer: "https://api", root: "/pod", interval: "2s"})
	config := string(files["/pod/etc/prometheus/config_out/prometheus.env.yaml"])
	if err != nil || strings.Contains(config, "30s") || strings.Count(config, "scrape_interval: 2s") != 3 ||
		!strings.Contains(config, "evaluation_interval: 2s") {
		t.Errorf("error %v; the configuration is\n%s", err, config)
	}
}

func TestGenerate_InvalidRuleNamedInError(t *testing.T) {
	o := made(t)
	o.rules[0].Spec.Groups[0].Rules[0].Expr.StrVal = "sum("
	if _, err := o.generate(settings{}); err == nil || !strings.Contains(err.Error(), own+"/rules") {
		t.Errorf("the error is %v", err)
	}
}
