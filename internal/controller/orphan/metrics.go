package orphan

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var nodesWithoutInstance = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "wmco_nodes_without_instance",
	Help: "Windows nodes that the operator has configured and that no WindowsInstance has: nobody watches over their hosts.",
})

func init() { metrics.Registry.MustRegister(nodesWithoutInstance) }
