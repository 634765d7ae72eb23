// Package queuemetrics disables the metrics of Kubernetes work queues, which are unused in the lab. Each queue
// with metrics wakes up twice a second. Without metrics, an idle control plane needs nearly a third less
// processor time.
package queuemetrics

import (
	_ "unsafe" // for go:linkname

	"k8s.io/client-go/util/workqueue"
)

// provider is the source of the metrics of queues. Kubernetes sets the provider once, during package
// initialization, and client-go has no function to reset it.
//
//go:linkname provider k8s.io/client-go/util/workqueue.globalMetricsProvider
var provider workqueue.MetricsProvider

// none is the initial provider: this package imports no package that sets the provider, and is therefore
// initialized earlier.
var none = provider

// Disable disables the metrics of queues created from now on.
func Disable() { provider = none }
