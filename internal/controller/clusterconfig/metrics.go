package clusterconfig

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var clusterSupported = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "wmco_cluster_supported",
	Help: "1 when the operator can serve the cluster, 0 when it cannot; the reason says why. There is one series at a time.",
}, []string{"reason"})

var settingsNotFollowed = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "wmco_settings_not_followed",
	Help: "Settings of the cluster, such as registry mirrors, that Windows nodes do not follow or follow only in part.",
})

func init() { metrics.Registry.MustRegister(clusterSupported, settingsNotFollowed) }
