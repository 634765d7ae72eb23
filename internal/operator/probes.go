package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/windows-machine-config/wmco/internal/payload"
)

// stuckLimit is how long a job on a host may go on beyond its limit before the operator counts as stuck, and is started again.
const stuckLimit = time.Hour

// syncLimit is how long one readiness probe waits for the caches.
const syncLimit = time.Second

// addProbes tells Kubernetes how the operator is. One that has lost the Lease of the leader, or cannot renew it, ends
// by itself. One that waits to become the leader is alive and ready: it has nothing to do yet.
func (c Config) addProbes(mgr ctrl.Manager) error {
	return errors.Join(
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

// checkJobs fails if a job on a host goes on far beyond its limit: it waits for nothing.
func checkJobs(beyond time.Duration) error {
	if beyond <= stuckLimit {
		return nil
	}
	return fmt.Errorf("a job on a host has not ended %s after its limit: the operator must be restarted", beyond)
}
