// Package backoff says when controllers try again after an error.
package backoff

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The wait after an error doubles from first to Longest. controller-runtime's own limit is 16 minutes and 40 seconds: a
// controller would stand still for that long after an API server that failed a few requests is well again.
const (
	first   = 5 * time.Millisecond
	Longest = time.Minute
)

// Limiter returns the rate limiter of a controller.
func Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, Longest)
}

// Options returns the options of a controller that needs no others.
func Options() controller.Options { return controller.Options{RateLimiter: Limiter()} }

// OptionsOn returns the options of a controller whose requests wait by a clock.
func OptionsOn(clock clock.WithTicker) controller.Options {
	options := Options()
	options.NewQueue = func(name string,
		limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: clock})
	}
	return options
}
