// Package queuemetrics leaves out the metrics of Kubernetes' work queues. A queue that is measured wakes up twice a second, and a control plane has
// hundreds of them: nearly a third of what one costs that has nothing to do. Nobody reads those metrics in the lab.
package queuemetrics

import (
	_ "unsafe" // for go:linkname

	"k8s.io/client-go/util/workqueue"
)

// provider is what queues take their metrics from. Kubernetes sets it, once, when its packages are initialized, and has no way to take it back.
//
//go:linkname provider k8s.io/client-go/util/workqueue.globalMetricsProvider
var provider workqueue.MetricsProvider

// none is what it was before: this package imports nothing that sets it, and so is initialized first.
var none = provider

// Disable has the queues that are made from now on without metrics.
func Disable() { provider = none }
