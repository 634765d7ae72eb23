// Package queue has the parts that several controllers share: the queues of their requests, the handlers that enqueue
// requests, writes that are retried, and reads of the API server that many requests share.
package queue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The delay after an error doubles from minRetryDelay to MaxRetryDelay. controller-runtime's own maximum is 16 minutes
// and 40 seconds: a controller would do nothing for that long after an API server that failed a few requests recovers.
const (
	minRetryDelay = 5 * time.Millisecond
	MaxRetryDelay = time.Minute
)

// RateLimiter returns the rate limiter of a controller.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, MaxRetryDelay)
}

// Options returns the options of a controller that needs no others.
func Options() controller.Options { return controller.Options{RateLimiter: RateLimiter()} }

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
