package kubelet

import (
	"crypto/tls"
	"fmt"
	"math"
	"net/http"
	"strconv"
)

// serveMetrics serves the metrics that the alerts of the cluster's Prometheus use, with the names and values of the
// kubelet: the remaining validity of its certificates. Source: k8s.io/kubernetes/pkg/kubelet/certificate.
func (s *server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	client, serving := math.Inf(1), math.Inf(1) // without a certificate that the kubelet renews
	if manager := s.identity.manager; manager != nil {
		client = s.k.timeToLive(manager.Current())
	}
	if manager := s.serving.manager; manager != nil {
		serving = s.k.timeToLive(manager.Current())
	}
	for _, m := range []struct {
		name, help string
		value      float64
	}{
		{"kubelet_certificate_manager_client_ttl_seconds", "[ALPHA] Gauge of the TTL (time-to-live) of the Kubelet's client " +
			"certificate. The value is in seconds until certificate expiry (negative if already expired). If client " +
			"certificate is invalid or unused, the value will be +INF.", client},
		{"kubelet_certificate_manager_server_ttl_seconds", "[ALPHA] Gauge of the shortest TTL (time-to-live) of the Kubelet's " +
			"serving certificate. The value is in seconds until certificate expiry (negative if already expired). If " +
			"serving certificate is invalid or unused, the value will be +INF.", serving},
	} {
		fmt.Fprintf(w, "# HELP %[1]s %[2]s\n# TYPE %[1]s gauge\n%[1]s %[3]s\n", m.name, m.help,
			strconv.FormatFloat(m.value, 'g', -1, 64))
	}
}

// timeToLive returns the seconds until a certificate expires.
func (k *kubelet) timeToLive(c *tls.Certificate) float64 {
	if c == nil || c.Leaf == nil {
		return math.Inf(1)
	}
	return math.Trunc(c.Leaf.NotAfter.Sub(k.Clock.Now()).Seconds())
}
