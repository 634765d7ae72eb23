// Package queue contains the shared parts of controllers: request queues, handlers that enqueue requests, retried
// writes, and shared reads of the API server.
package queue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The delay after an error doubles from minRetryDelay to MaxRetryDelay. The default maximum of controller-runtime
// is 16 minutes and 40 seconds. After a short failure of the API server, a controller could stay idle for that
// long.
const (
	minRetryDelay = 5 * time.Millisecond
	MaxRetryDelay = time.Minute
)

// RateLimiter returns the rate limiter of a controller.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, MaxRetryDelay)
}

// Options returns the default options of a controller.
func Options() controller.Options { return controller.Options{RateLimiter: RateLimiter()} }

// OptionsOn returns the options of a controller with request delays that follow the given clock.
func OptionsOn(clock clock.WithTicker) controller.Options {
	options := Options()
	options.NewQueue = func(name string,
		limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: clock})
	}
	return options
}
