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

// maxJobOverrun is the time that a job on a host may exceed its limit. Beyond that time, the operator is
// considered stuck and is restarted.
const maxJobOverrun = time.Hour

// cacheSyncTimeout is the timeout of one readiness probe for the caches.
const cacheSyncTimeout = time.Second

// addProbes adds the health checks for Kubernetes. A leader that has lost the Lease, or cannot renew it, ends
// by itself. An operator that waits for leadership is alive and ready, because no work is pending.
func (c Config) addProbes(mgr ctrl.Manager) error {
	return errors.Join(
		mgr.AddReadyzCheck("caches", func(r *http.Request) error {
			ctx, cancel := context.WithTimeout(r.Context(), cacheSyncTimeout)
			defer cancel()
			if !mgr.GetCache().WaitForCacheSync(ctx) {
				return errors.New("the operator's caches have not synced yet")
			}
			return nil
		}),
		mgr.AddReadyzCheck("payload", func(*http.Request) error {
			_, err := payload.Load(c.PayloadDirectory)
			return err
		}),
	)
}

// checkJobs returns an error if a job on a host exceeds its limit by far. Every wait of a job has a limit, so such a
// job hangs.
func checkJobs(beyond time.Duration) error {
	if beyond <= maxJobOverrun {
		return nil
	}
	return fmt.Errorf("a job on a host has not ended %s after its timeout: the operator must be restarted", beyond)
}
