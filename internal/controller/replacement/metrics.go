package replacement

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// causeLabel returns the label for why a Machine is replaced: its host has another SSH key, or is of another version of
// the operator.
func causeLabel(cause v1alpha1.DisruptionCause) string {
	if cause == v1alpha1.CauseUpgrade {
		return "version"
	}
	return "key"
}

var (
	machinesReplaced = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "wmco_machines_replaced_total",
		Help: "Machines that the operator has deleted so that their MachineSets create new ones, by cause.",
	}, []string{"cause"})
	machinesOutdated = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "wmco_machines_outdated",
		Help: "Machines that wait to be replaced, or for their hosts to be changed in place.",
	})
)

func init() { metrics.Registry.MustRegister(machinesReplaced, machinesOutdated) }
