package monitoring

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/owned"
)

// operatorMonitor tells the cluster's Prometheus to scrape the operator. The Service is part of the installation. The
// ServiceMonitor is not: the name in the certificate has the namespace in it, which neither a bundle nor a kustomize
// base can know, and without the kinds of the prometheus-operator the installation would fail.
func operatorMonitor(namespace string) owned.Object {
	return owned.Object{
		Identity: ofKind(serviceMonitorKind, namespace, v1alpha1.OperatorName),
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
			// The operator asks the API server whose token it is: see internal/operator/metrics.go. The file is in each
			// pod of Prometheus.
			"bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
			"tlsConfig": map[string]any{
				"caFile":     "/etc/prometheus/configmaps/serving-certs-ca-bundle/service-ca.crt",
				"serverName": v1alpha1.OperatorName + "-metrics." + namespace + ".svc",
			},
		}},
	}
}
