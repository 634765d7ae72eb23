package disruption

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	nodesDisrupted = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "wmco_nodes_disrupted",
		Help: "Windows nodes that the operator is disturbing, and Machines that it has deleted and that are not replaced yet.",
	})
	disruptionsStarted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "wmco_disruptions_total",
		Help: "Disruptions of Windows nodes that the operator has started, by cause.",
	}, []string{"cause"})
	disruptionsFailed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "wmco_disruptions_failed_total",
		Help: "Windows nodes that did not come back from a disturbance before the failure deadline, by cause.",
	}, []string{"cause"})
	nodesOutdated = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "wmco_nodes_outdated",
		Help: "Windows nodes in service that were not configured by this version of the operator.",
	})
	upgradeStopped = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "wmco_upgrade_stopped",
		Help: "1 while changes of Windows nodes are stopped until an administrator acts, 0 otherwise.",
	})
)

func init() {
	metrics.Registry.MustRegister(nodesDisrupted, disruptionsStarted, disruptionsFailed, nodesOutdated, upgradeStopped)
}
