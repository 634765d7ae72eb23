package prometheus

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"gopkg.in/yaml.v2"
)

const (
	// configFile is the configuration that the prometheus-operator generates from the operator's objects; a
	// test of lab/prometheusoperator compares it.
	configFile = "testdata/prometheus.yaml"
	own        = "openshift-windows-machine-config-operator"
)

// tls contains the certificate paths of Prometheus.
type tls struct {
	CA          string `yaml:"ca_file"`
	Certificate string `yaml:"cert_file"`
	Key         string `yaml:"key_file"`
	ServerName  string `yaml:"server_name"`
}

// job is the part of a scrape configuration that the tests check.
type job struct {
	Name      string `yaml:"job_name"`
	Scheme    string
	Token     string            `yaml:"bearer_token_file"`
	TLS       tls               `yaml:"tls_config"`
	Targets   []*relabel.Config `yaml:"relabel_configs"`
	Series    []*relabel.Config `yaml:"metric_relabel_configs"`
	Discovery []struct {
		Role   string
		Server string `yaml:"api_server"`
	} `yaml:"kubernetes_sd_configs"`
}

// configured returns the scrape job for a ServiceMonitor, and the patterns of the rule files.
func configured(t *testing.T, monitor string) (job, []string) {
	t.Helper()
	data, err := os.ReadFile(configFile)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Jobs  []job    `yaml:"scrape_configs"`
		Rules []string `yaml:"rule_files"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(config.Jobs, func(j job) bool { return j.Name == "serviceMonitor/"+own+"/"+monitor+"/0" })
	if i < 0 {
		t.Fatalf("there is no job of ServiceMonitor %s", monitor)
	}
	return config.Jobs[i], config.Rules
}

//
func TestRelabel_InstanceOfTargetIsNode(t *testing.T) {
	exporters, _ := configured(t, "windows-exporter")
	// The labels as discovered by Prometheus for an address in an EndpointSlice.
	found := map[string]string{
		"__address__": "10.0.0.1:9182", "job": "j", "__meta_kubernetes_namespace": own,
		"__meta_kubernetes_service_name": "windows-exporter", "__meta_kubernetes_service_label_name": "windows-exporter",
		"__meta_kubernetes_service_labelpresent_name": "true", "__meta_kubernetes_endpointslice_port_name": "metrics",
		"__meta_kubernetes_endpointslice_address_target_kind": "Node",
		"__meta_kubernetes_endpointslice_address_target_name": "win-a",
	}
	got, kept := relabel.Process(labels.FromMap(found), exporters.Targets...)
	if !kept || got.Get("instance") != "win-a" || got.Get("job") != "windows-exporter" || got.Get("namespace") != own {
		t.Errorf("it is scraped: %t; the labels are %v", kept, got)
	}
	found["__meta_kubernetes_service_label_name"] = "another"
	if got, kept := relabel.Process(labels.FromMap(found), exporters.Targets...); kept {
		t.Errorf("a target of another Service is scraped: %v", got)
	}
}

// The exporter's label namespace becomes exported_namespace, because the target already has this label.
func TestRelabel_ContainerSeriesHasNamespaceOfPod(t *testing.T) {
	exporters, _ := configured(t, "windows-exporter")
	for name, want := range map[string]string{"windows_container_cpu_usage_seconds_total": "shop", "windows_made_up": own} {
		got, _ := relabel.Process(labels.FromMap(map[string]string{"__name__": name, "namespace": own,
			"exported_namespace": "shop", "pod": "web-1"}), exporters.Series...)
		if got.Has("exported_namespace") || got.Get("namespace") != want || got.Get("pod") != "web-1" {
			t.Errorf("the labels are %v", got)
		}
	}
}

func TestConfig_FilesAreBelowPodRoot(t *testing.T) {
	exporters, rules := configured(t, "windows-exporter")
	operator, _ := configured(t, "windows-machine-config-operator")
	files := append([]string{exporters.TLS.CA, exporters.TLS.Certificate, exporters.TLS.Key, operator.TLS.CA, operator.Token}, rules...)
	if slices.ContainsFunc(files, func(file string) bool { return !strings.HasPrefix(file, "/pod/") || file != filepath.Clean(file) }) {
		t.Errorf("the files are %q", files)
	}
	for _, j := range []job{exporters, operator} {
		if j.Scheme != "https" || j.TLS.ServerName == "" || len(j.Discovery) != 1 || j.Discovery[0].Role != "endpointslice" ||
			j.Discovery[0].Server != "https://api.lab.example.com:6443" {
			t.Errorf("%+v", j)
		}
	}
}
