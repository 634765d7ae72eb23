package instance

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var stepsDone = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "wmco_steps_total",
	Help: "Steps that agents have done on Windows hosts, by kind.",
}, []string{"step"})

func init() { metrics.Registry.MustRegister(stepsDone) }

// stepKind is the step's name without its target, to keep the number of series small.
func stepKind(name string) string {
	kind, _, _ := strings.Cut(name, " ")
	return kind
}
