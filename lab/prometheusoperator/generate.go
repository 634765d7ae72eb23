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
	// version is the one that lab/prometheus requires: v0.305 is 3.5.
	version = "v3.5.0"
	// ruleFiles is the ConfigMap that the prometheus-operator puts rules into.
	ruleFiles = "prometheus-k8s-rulefiles-0"
	// secrets is where a pod has the token of its ServiceAccount, and the certificate authority of the API server.
	secrets = "/var/run/secrets/kubernetes.io/serviceaccount"
	// etc is where the pod of Prometheus has all its other files.
	etc = "/etc/prometheus"
	// configFile is where Prometheus reads its configuration, which the reloader in its pod has written there.
	configFile = etc + "/config_out/prometheus.env.yaml"
)

// settings say where Prometheus runs, which is no pod in the lab.
type settings struct {
	// apiServer is the address of the API server.
	apiServer string
	// root is the folder that stands for the root of the pod's file system.
	root string
	// interval is how often Prometheus scrapes and evaluates, instead of what the objects say. Zero: what they say.
	interval monitoringv1.Duration
}

// generate returns the files of Prometheus' pod, by their paths in the file system of the machine: the configuration and
// the rules. Two things in the configuration differ from that of a cluster: the address of the API server is in it, and
// the paths of files begin with the root.
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
	// None of our objects refers to a Secret, so that the store stays empty.
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

// inPod does what the reloader does, which fills in variables of the pod: this is the first one of one shard. It also puts
// the root before the paths of the pod's files.
func (s settings) inPod(config string) string {
	return strings.NewReplacer("$(POD_NAME)", "prometheus-k8s-0", "$(SHARD)", "0",
		etc+"/", path.Join(s.root, etc)+"/", secrets+"/", path.Join(s.root, secrets)+"/").Replace(config)
}

// content is the file that the prometheus-operator makes of a PrometheusRule.
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

// prometheus is the object from which the prometheus-operator runs OpenShift's Prometheus, as far as it decides on the
// configuration.
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
