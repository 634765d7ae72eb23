package replacement

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// causeKey is why a Machine is replaced: its host has another SSH key.
const causeKey = "key"

var (
	machinesReplaced = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "wmco_machines_replaced_total",
		Help: "Machines that the operator has deleted so that their MachineSets make others, by cause.",
	}, []string{"cause"})
	machinesOutdated = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "wmco_machines_outdated",
		Help: "Machines that wait to be replaced, or for their hosts to be changed in place.",
	})
)

func init() { metrics.Registry.MustRegister(machinesReplaced, machinesOutdated) }
