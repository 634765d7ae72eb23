package orphan

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var nodesWithoutInstance = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "wmco_nodes_without_instance",
	Help: "Windows nodes that the operator has configured but that no WindowsInstance refers to, so that nothing monitors or repairs their hosts.",
})

func init() { metrics.Registry.MustRegister(nodesWithoutInstance) }
