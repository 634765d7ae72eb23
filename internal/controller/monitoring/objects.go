package monitoring

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/owned"
)

// Names of the objects, unchanged since before version 12.
const (
	// Name is the name of the Service and the ServiceMonitor.
	Name = "windows-exporter"
	// RulesName is the name of the PrometheusRule.
	RulesName = "windows-prometheus-k8s-rules"

	portName     = "metrics"
	exporterPort = 9182
	labelName    = "name"
)

const (
	// annotationServing and annotationServingAlpha request a certificate from the service CA, stored in the
	// named Secret.
	annotationServing      = "service.beta.openshift.io/serving-cert-secret-name"
	annotationServingAlpha = "service.alpha.openshift.io/serving-cert-secret-name"
)

// Kinds of the prometheus-operator, which is optional in a cluster.
var (
	serviceMonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	ruleKind           = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"}
)

// adoptLegacy returns a function that reports whether the operator adopts an object: the object has no label of a
// manager, and a legacy operator (before version 12) created it.
func adoptLegacy(created func(client.Object) bool) func(client.Object) bool {
	return func(object client.Object) bool {
		return object.GetLabels()[v1alpha1.LabelManagedBy] == "" && created(object)
	}
}

// newService returns the Service of the exporters, for which the service CA issues their certificate. The Service has
// no selector: the exporters do not run in pods.
func newService(namespace string) owned.Object {
	return owned.Object{
		Identity: &corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name},
		},
		Fill: func(object client.Object) {
			s, ok := object.(*corev1.Service)
			if !ok {
				return
			}
			if s.ResourceVersion == "" {
				s.Spec.ClusterIP = corev1.ClusterIPNone // immutable after creation
			}
			setIn(&s.Labels, labelName, Name)
			setIn(&s.Annotations, annotationServing, cluster.MetricsServing(namespace).Name)
			delete(s.Annotations, annotationServingAlpha)
			s.Spec.Selector = nil
			if !hasExporterPortOnly(s.Spec.Ports) {
				s.Spec.Ports = []corev1.ServicePort{{Name: portName, Protocol: corev1.ProtocolTCP, Port: exporterPort,
					TargetPort: intstr.FromInt32(exporterPort)}}
			}
		},
		Adopt: adoptLegacy(func(object client.Object) bool {
			s, ok := object.(*corev1.Service)
			return ok && s.Labels[labelName] == Name && len(s.Spec.Selector) == 0 && hasExporterPortOnly(s.Spec.Ports)
		}),
	}
}

// earlierEndpoints returns the Endpoints that earlier releases wrote in addition to the EndpointSlices.
// Kubernetes mirrors the Endpoints of legacy operators (before version 12) into EndpointSlices, where deleted
// nodes would remain.
func earlierEndpoints(namespace string) owned.Object {
	return owned.Object{
		Identity: newUnstructured(corev1.SchemeGroupVersion.WithKind("Endpoints"), namespace, Name),
		Adopt:    adoptLegacy(func(client.Object) bool { return true }), // they belong to the Service of the same name
	}
}

// hasExporterPortOnly reports whether the exporters' port is the only one of a Service.
func hasExporterPortOnly(ports []corev1.ServicePort) bool {
	return len(ports) == 1 && ports[0].Name == portName && ports[0].Port == exporterPort
}

// newServiceMonitor returns the ServiceMonitor that configures the cluster's Prometheus to scrape the exporters.
func newServiceMonitor(namespace string) owned.Object {
	return owned.Object{
		Identity: newUnstructured(serviceMonitorKind, namespace, Name),
		Fill: func(object client.Object) {
			fillSpec(object, serviceMonitorSpec(namespace))
			setLabels(object, map[string]string{labelName: Name})
		},
		Adopt: adoptLegacy(func(object client.Object) bool {
			u, ok := object.(*unstructured.Unstructured)
			if !ok {
				return false
			}
			scraped, _, _ := unstructured.NestedSlice(u.Object, "spec", "endpoints")
			return slices.ContainsFunc(scraped, func(endpoint any) bool {
				e, ok := endpoint.(map[string]any)
				name, _, _ := unstructured.NestedString(e, "tlsConfig", "serverName")
				return ok && (name == serverName(namespace) || u.GetLabels()[labelName] == Name)
			})
		}),
	}
}

// serverName returns the DNS name in the exporters' certificate.
func serverName(namespace string) string { return Name + "." + namespace + ".svc" }

func serviceMonitorSpec(namespace string) map[string]any {
	return map[string]any{
		"jobLabel":          labelName,
		"namespaceSelector": map[string]any{"matchNames": []any{namespace}},
		"selector":          map[string]any{"matchLabels": map[string]any{labelName: Name}},
		// Without this role, Prometheus reads Endpoints, which nothing writes for a Service without a selector.
		"serviceDiscoveryRole": "EndpointSlice",
		"endpoints": []any{map[string]any{
			"port": portName, "path": "/metrics", "scheme": "https", "interval": "30s",
			// The pods of OpenShift's Prometheus contain these files, and use them to scrape the node exporters
			// of Linux nodes.
			"tlsConfig": map[string]any{
				"caFile":     "/etc/prometheus/configmaps/serving-certs-ca-bundle/service-ca.crt",
				"certFile":   "/etc/prometheus/secrets/metrics-client-certs/tls.crt",
				"keyFile":    "/etc/prometheus/secrets/metrics-client-certs/tls.key",
				"serverName": serverName(namespace),
			},
			// The prometheus-operator sets node from the reference to the Node. The console and the rules for
			// Linux nodes identify a node by instance.
			"relabelings": []any{map[string]any{
				"action": "replace", "sourceLabels": []any{"node"}, "regex": "(.+)", "replacement": "$1",
				"targetLabel": "instance",
			}},
			// honorLabels stays false, so that no host can impersonate another host. Of the exported labels,
			// only the namespace of a container's pod replaces a label of the target.
			"metricRelabelings": []any{
				map[string]any{
					"action": "replace", "sourceLabels": []any{"__name__", "exported_namespace"}, "separator": ";",
					"regex": "windows_container_.+;(.+)", "replacement": "$1", "targetLabel": "namespace",
				},
				map[string]any{"action": "labeldrop", "regex": "exported_namespace"},
			},
		}},
	}
}

// newRules returns the recording rules and the alerts.
func newRules(namespace string) owned.Object {
	return owned.Object{
		Identity: newUnstructured(ruleKind, namespace, RulesName),
		Fill: func(object client.Object) {
			fillSpec(object, rulesSpec(namespace))
			setLabels(object, map[string]string{"prometheus": "k8s", "role": "alert-rules"})
		},
		Adopt: adoptLegacy(func(object client.Object) bool {
			u, ok := object.(*unstructured.Unstructured)
			if !ok {
				return false
			}
			groups, _, _ := unstructured.NestedSlice(u.Object, "spec", "groups")
			return slices.ContainsFunc(groups, func(group any) bool {
				g, ok := group.(map[string]any)
				return ok && g["name"] == ruleGroup
			})
		}),
	}
}

func newUnstructured(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func fillSpec(object client.Object, spec map[string]any) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		u.Object["spec"] = spec
	}
}

func setLabels(object client.Object, labels map[string]string) {
	all := object.GetLabels()
	for name, value := range labels {
		setIn(&all, name, value)
	}
	object.SetLabels(all)
}

func setIn(values *map[string]string, name, value string) {
	if *values == nil {
		*values = map[string]string{}
	}
	(*values)[name] = value
}
