package fleet

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reader is the name of the ServiceAccount that reads the operator's metrics.
const reader = "bench"

// allowReader grants the ServiceAccount the right to read all metrics, and stores its token.
func (l *lab) allowReader(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: l.env.Namespace(), Name: reader}}
	if err := l.env.Client.Create(ctx, account); err != nil {
		return fmt.Errorf("create the service account that reads metrics: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: reader}},
	}
	if err := l.env.Client.Create(ctx, binding); err != nil {
		return fmt.Errorf("allow the service account to read metrics: %w", err)
	}
	config, err := l.env.Cluster().ServiceAccountConfig(ctx, account.Namespace, reader)
	if err != nil {
		return err
	}
	l.token = config.BearerToken
	return nil
}

// reconcileTime returns the seconds within which 99 of 100 reconciles of instances ended since the operator's
// start: an upper bound of the metric's buckets.
func (l *lab) reconcileTime(ctx context.Context) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+metricsAddress+"/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("read the operator's metrics: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+l.token)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // self-signed, in the lab's own network
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, fmt.Errorf("read the operator's metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // read-only
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("read the operator's metrics: %s", answer.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return 0, fmt.Errorf("read the operator's metrics: %w", err)
	}
	for _, metric := range families["controller_runtime_reconcile_time_seconds"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "controller" && label.GetValue() == "instance" {
				return quantileBound(metric.GetHistogram(), 0.99), nil
			}
		}
	}
	return 0, fmt.Errorf("read the operator's metrics: they have no reconcile of an instance")
}

// quantileBound returns the upper bound of the bucket that contains a share of all observations, or the largest number
// if there is none: JSON has no infinity.
func quantileBound(h *dto.Histogram, share float64) float64 {
	want := share * float64(h.GetSampleCount())
	for _, bucket := range h.GetBucket() {
		if float64(bucket.GetCumulativeCount()) >= want {
			return min(bucket.GetUpperBound(), math.MaxFloat64)
		}
	}
	return math.MaxFloat64
}
