// Package queuemetrics leaves out the metrics of Kubernetes' work queues, which nobody reads in the lab. Each queue
// that has them wakes up twice a second; without them an idle control plane takes nearly a third less processor time.
package queuemetrics

import (
	_ "unsafe" // for go:linkname

	"k8s.io/client-go/util/workqueue"
)

// provider is where queues get their metrics from. Kubernetes sets it once, when its packages are initialized, and
// client-go has no function that takes it back.
//
//go:linkname provider k8s.io/client-go/util/workqueue.globalMetricsProvider
var provider workqueue.MetricsProvider

// none is the provider before that: this package imports nothing that sets it, and so is initialized earlier.
var none = provider

// Disable leaves the queues that are made from now on without metrics.
func Disable() { provider = none }
