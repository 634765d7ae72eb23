package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/internal/payload"
)

// stuckLimit is how long one pass over one object may take before the operator counts as stuck, and is started again.
// A pass over a host ends with instance.PassLimit: one that goes on for much longer waits for nothing.
const stuckLimit = 6 * time.Hour

// syncLimit is how long one readiness probe waits for the caches.
const syncLimit = time.Second

// longestPass is the metric that tells of each controller how long its oldest pass has been going on.
const longestPass = "workqueue_longest_running_processor_seconds"

// addProbes tells Kubernetes how the operator is. One that has lost the Lease of the leader, or cannot renew it, ends
// by itself. One that waits to become the leader is alive and ready: it has nothing to do yet.
func (c Config) addProbes(mgr ctrl.Manager) error {
	return errors.Join(
		mgr.AddHealthzCheck("controllers", func(*http.Request) error { return checkPasses(metrics.Registry) }),
		mgr.AddReadyzCheck("caches", func(r *http.Request) error {
			ctx, cancel := context.WithTimeout(r.Context(), syncLimit)
			defer cancel()
			if !mgr.GetCache().WaitForCacheSync(ctx) {
				return errors.New("the operator's caches are not filled yet")
			}
			return nil
		}),
		mgr.AddReadyzCheck("payload", func(*http.Request) error {
			_, err := payload.Load(c.PayloadDirectory)
			return err
		}),
	)
}

// checkPasses fails when a controller's pass has been going on for longer than stuckLimit. A metric that cannot be read
// is no reason to start the operator again: the others are there all the same.
func checkPasses(gatherer prometheus.Gatherer) error {
	families, _ := gatherer.Gather()
	for _, family := range families {
		if family.GetName() != longestPass {
			continue
		}
		for _, metric := range family.GetMetric() {
			lasts := time.Duration(metric.GetGauge().GetValue() * float64(time.Second))
			if lasts <= stuckLimit {
				continue
			}
			controller := "unknown"
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" {
					controller = label.GetValue()
				}
			}
			return fmt.Errorf("controller %s has worked on one object for %s, longer than %s: the operator must be restarted",
				controller, lasts, stuckLimit)
		}
	}
	return nil
}
