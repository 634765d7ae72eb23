package nodecondition

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	nodesByStatus = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "wmco_nodes_configuration",
		Help: "Windows nodes by the status of their condition WindowsConfiguration: True, False or Unknown.",
	}, []string{"status"})
	repairsReported = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "wmco_repairs_reported_total",
		Help: "Times that the agent of a Windows node reported that it had repaired its host.",
	})
)

func init() { metrics.Registry.MustRegister(nodesByStatus, repairsReported) }

// statusOf returns the status of a condition as a value of the metric's label. The host writes the condition, and is
// not trusted to name no other.
func statusOf(condition *corev1.NodeCondition) corev1.ConditionStatus {
	if condition != nil && (condition.Status == corev1.ConditionTrue || condition.Status == corev1.ConditionFalse) {
		return condition.Status
	}
	return corev1.ConditionUnknown
}
