package fleet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/lab/rig"
)

// metricsAddress is where the operator serves its metrics.
const metricsAddress = apiAddress + ":8443"

// reader is the ServiceAccount that reads them: each namespace has one of that name.
const reader = "default"

// metricsReader reads what the operator says of itself.
type metricsReader struct {
	token  string
	client *http.Client
}

// newMetricsReader gives the reader the right to the path, as OpenShift's Prometheus has it.
func newMetricsReader(ctx context.Context, r *rig.Rig) (*metricsReader, error) {
	meta := metav1.ObjectMeta{Name: "lab-metrics-reader"}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"},
		Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace(), Name: reader}},
	}
	if err := r.Client.Create(ctx, role); err != nil {
		return nil, fmt.Errorf("let the operator's metrics be read: %w", err)
	}
	if err := r.Client.Create(ctx, binding); err != nil {
		return nil, fmt.Errorf("let the operator's metrics be read: %w", err)
	}
	config, err := r.Cluster().ServiceAccountConfig(ctx, r.Namespace(), reader)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // G402: a program that this one has started, with a certificate of its own making
	return &metricsReader{token: config.BearerToken, client: &http.Client{Transport: transport, Timeout: time.Minute}}, nil
}

// families are metrics by name.
type families map[string]*dto.MetricFamily

func (m *metricsReader) read(ctx context.Context) (families, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+metricsAddress+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("read the operator's metrics: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+m.token)
	answer, err := m.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the operator's metrics: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the operator's metrics: it answers %s", answer.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	read, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read the operator's metrics: %w", err)
	}
	return read, nil
}

// gauge returns the value of a metric without labels.
func (f families) gauge(name string) (float64, error) {
	family := f[name]
	if family == nil || len(family.GetMetric()) != 1 {
		return 0, fmt.Errorf("the operator has no metric %s, or more than one", name)
	}
	return family.GetMetric()[0].GetGauge().GetValue(), nil
}
