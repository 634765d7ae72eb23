package monitoring

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/owned"
)

// newOperatorMonitor returns the ServiceMonitor that configures the cluster's Prometheus to scrape the operator.
// The Service is part of the installation. The ServiceMonitor is not, for two reasons. The name in the
// certificate contains the namespace, which neither a bundle nor a kustomize base knows. Without the kinds of
// the prometheus-operator the installation would fail.
func newOperatorMonitor(namespace string) owned.Object {
	return owned.Object{
		Identity: newUnstructured(serviceMonitorKind, namespace, v1alpha1.OperatorName),
		Fill: func(object client.Object) {
			fillSpec(object, operatorMonitorSpec(namespace))
			setLabels(object, map[string]string{labelName: v1alpha1.OperatorName})
		},
	}
}

func operatorMonitorSpec(namespace string) map[string]any {
	return map[string]any{
		"jobLabel":             labelName,
		"namespaceSelector":    map[string]any{"matchNames": []any{namespace}},
		"selector":             map[string]any{"matchLabels": map[string]any{labelName: v1alpha1.OperatorName}},
		"serviceDiscoveryRole": "EndpointSlice",
		"endpoints": []any{map[string]any{ //nolint:gosec // a path, and no token
			"port": portName, "path": "/metrics", "scheme": "https", "interval": "30s",
			// The operator authenticates the token with the API server: see internal/operator/metrics.go. Each
			// pod of Prometheus contains the file.
			"bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
			"tlsConfig": map[string]any{
				"caFile":     "/etc/prometheus/configmaps/serving-certs-ca-bundle/service-ca.crt",
				"serverName": v1alpha1.OperatorName + "-metrics." + namespace + ".svc",
			},
		}},
	}
}
