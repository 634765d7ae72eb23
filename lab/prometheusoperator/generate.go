package main

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus-operator/prometheus-operator/pkg/assets"
	promoperator "github.com/prometheus-operator/prometheus-operator/pkg/operator"
	generator "github.com/prometheus-operator/prometheus-operator/pkg/prometheus"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	// version is the version that lab/prometheus requires: v0.305 is 3.5.
	version = "v3.5.0"
	// ruleFiles is the name of the prometheus-operator's ConfigMap with rules.
	ruleFiles = "prometheus-k8s-rulefiles-0"
	// secrets is the directory in a pod with the token of the ServiceAccount, and the certificate authority of
	// the API server.
	secrets = "/var/run/secrets/kubernetes.io/serviceaccount"
	// etc is the directory of all other files in the pod of Prometheus.
	etc = "/etc/prometheus"
	// configFile is the configuration file of Prometheus, which the reloader in the pod writes.
	configFile = etc + "/config_out/prometheus.env.yaml"
)

// settings describe the environment of Prometheus, which does not run in a pod in the lab.
type settings struct {
	// apiServer is the address of the API server.
	apiServer string
	// root is the directory that replaces the root of the pod's file system.
	root string
	// interval overrides the scrape and evaluation interval of the objects. Zero: no override.
	interval monitoringv1.Duration
}

// generate returns the files of Prometheus' pod, by local path: the configuration and the rules. The
// configuration differs from the configuration of a cluster in two points: it contains the address of the API
// server, and paths of files start with the root.
func (o objects) generate(s settings) (files map[string][]byte, err error) {
	prometheus := s.prometheus()
	cg, err := generator.NewConfigGenerator(nil, prometheus, generator.WithEndpointSliceSupport())
	if err != nil {
		return nil, fmt.Errorf("start the prometheus-operator's generator: %w", err)
	}
	monitors := map[string]*monitoringv1.ServiceMonitor{}
	for _, each := range o.monitors {
		m := each.DeepCopy()
		for i := range m.Spec.Endpoints {
			m.Spec.Endpoints[i].Interval = cmp.Or(s.interval, m.Spec.Endpoints[i].Interval)
		}
		monitors[m.Namespace+"/"+m.Name] = m
	}
	// None of our objects refers to a Secret, so that the store is empty.
	config, err := cg.GenerateServerConfiguration(prometheus, monitors, nil, nil, nil, assets.NewStoreBuilder(nil, nil), nil, nil,
		nil, []string{ruleFiles})
	if err != nil {
		return nil, fmt.Errorf("generate the configuration of Prometheus: %w", err)
	}
	files = map[string][]byte{path.Join(s.root, configFile): []byte(s.inPod(string(config)))}
	for _, rule := range o.rules {
		name := fmt.Sprintf("%s-%s-%s.yaml", rule.Namespace, rule.Name, rule.UID)
		if files[path.Join(s.root, etc, "rules", ruleFiles, name)], err = content(rule); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// inPod replaces variables of the pod as the reloader does: this is the first pod of one shard. It also adds
// the root to the paths of the pod's files.
func (s settings) inPod(config string) string {
	return strings.NewReplacer("$(POD_NAME)", "prometheus-k8s-0", "$(SHARD)", "0",
		etc+"/", path.Join(s.root, etc)+"/", secrets+"/", path.Join(s.root, secrets)+"/").Replace(config)
}

// content returns the file that the prometheus-operator generates from a PrometheusRule.
func content(rule *monitoringv1.PrometheusRule) ([]byte, error) {
	if errs := promoperator.ValidateRule(rule.Spec, model.UTF8Validation); len(errs) > 0 {
		return nil, fmt.Errorf("PrometheusRule %s/%s: the prometheus-operator refuses it: %v", rule.Namespace, rule.Name, errs)
	}
	data, err := yaml.Marshal(rule.Spec)
	if err != nil {
		return nil, fmt.Errorf("PrometheusRule %s/%s: %w", rule.Namespace, rule.Name, err)
	}
	return data, nil
}

// prometheus returns the object for OpenShift's Prometheus that the prometheus-operator reads, with the fields
// that affect the configuration.
func (s settings) prometheus() *monitoringv1.Prometheus {
	interval := cmp.Or(s.interval, "30s")
	return &monitoringv1.Prometheus{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-monitoring", Name: "k8s"},
		Spec: monitoringv1.PrometheusSpec{
			CommonPrometheusFields: monitoringv1.CommonPrometheusFields{
				Version: version, ScrapeInterval: interval,
				APIServerConfig: &monitoringv1.APIServerConfig{
					Host:          s.apiServer,
					Authorization: &monitoringv1.Authorization{CredentialsFile: secrets + "/token"},
					TLSConfig:     &monitoringv1.TLSConfig{CAFile: secrets + "/ca.crt"},
				},
			},
			EvaluationInterval: interval,
			RuleSelector:       &metav1.LabelSelector{},
		},
	}
}
