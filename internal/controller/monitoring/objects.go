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

// Names of the objects, as operators before version 12 have them.
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
	// annotationServing and annotationServingAlpha have the service CA keep a certificate in the named Secret.
	annotationServing      = "service.beta.openshift.io/serving-cert-secret-name"
	annotationServingAlpha = "service.alpha.openshift.io/serving-cert-secret-name"
)

// Kinds of the prometheus-operator, which a cluster need not have.
var (
	serviceMonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	ruleKind           = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"}
)

// legacy returns whether the operator takes over an object: one without the label of a manager that an operator before
// version 12 has created.
func legacy(created func(client.Object) bool) func(client.Object) bool {
	return func(object client.Object) bool {
		return object.GetLabels()[v1alpha1.LabelManagedBy] == "" && created(object)
	}
}

// service returns the Service that the service CA makes the exporters' certificate for. It has no selector: the
// exporters are no pods.
func service(namespace string) owned.Object {
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
				s.Spec.ClusterIP = corev1.ClusterIPNone // it cannot be changed later
			}
			setIn(&s.Labels, labelName, Name)
			setIn(&s.Annotations, annotationServing, cluster.MetricsServing(namespace).Name)
			delete(s.Annotations, annotationServingAlpha)
			s.Spec.Selector = nil
			if !scrapedPorts(s.Spec.Ports) {
				s.Spec.Ports = []corev1.ServicePort{{Name: portName, Protocol: corev1.ProtocolTCP, Port: exporterPort,
					TargetPort: intstr.FromInt32(exporterPort)}}
			}
		},
		Adopt: legacy(func(object client.Object) bool {
			s, ok := object.(*corev1.Service)
			return ok && s.Labels[labelName] == Name && len(s.Spec.Selector) == 0 && scrapedPorts(s.Spec.Ports)
		}),
	}
}

// earlierEndpoints are what earlier releases wrote beside the EndpointSlices. Kubernetes makes EndpointSlices of those
// from before version 12, in which deleted nodes would stay.
func earlierEndpoints(namespace string) owned.Object {
	return owned.Object{
		Identity: ofKind(corev1.SchemeGroupVersion.WithKind("Endpoints"), namespace, Name),
		Adopt:    legacy(func(client.Object) bool { return true }), // they belong to the Service of their name
	}
}

// scrapedPorts reports whether the exporters' port is the only one of a Service.
func scrapedPorts(ports []corev1.ServicePort) bool {
	return len(ports) == 1 && ports[0].Name == portName && ports[0].Port == exporterPort
}

// serviceMonitor tells the cluster's Prometheus to scrape the exporters.
func serviceMonitor(namespace string) owned.Object {
	return owned.Object{
		Identity: ofKind(serviceMonitorKind, namespace, Name),
		Fill: func(object client.Object) {
			fillSpec(object, serviceMonitorSpec(namespace))
			setLabels(object, map[string]string{labelName: Name})
		},
		Adopt: legacy(func(object client.Object) bool {
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

// serverName is what the exporters' certificate is for.
func serverName(namespace string) string { return Name + "." + namespace + ".svc" }

func serviceMonitorSpec(namespace string) map[string]any {
	return map[string]any{
		"jobLabel":          labelName,
		"namespaceSelector": map[string]any{"matchNames": []any{namespace}},
		"selector":          map[string]any{"matchLabels": map[string]any{labelName: Name}},
		// Without it, Prometheus reads Endpoints, which nothing writes for a Service without a selector.
		"serviceDiscoveryRole": "EndpointSlice",
		"endpoints": []any{map[string]any{
			"port": portName, "path": "/metrics", "scheme": "https", "interval": "30s",
			// The files are in the pods of OpenShift's Prometheus, which scrapes its own node exporters with them.
			"tlsConfig": map[string]any{
				"caFile":     "/etc/prometheus/configmaps/serving-certs-ca-bundle/service-ca.crt",
				"certFile":   "/etc/prometheus/secrets/metrics-client-certs/tls.crt",
				"keyFile":    "/etc/prometheus/secrets/metrics-client-certs/tls.key",
				"serverName": serverName(namespace),
			},
			// The prometheus-operator sets node from the reference to the Node. The console and the rules for Linux nodes find a
			// node by instance.
			"relabelings": []any{map[string]any{
				"action": "replace", "sourceLabels": []any{"node"}, "regex": "(.+)", "replacement": "$1",
				"targetLabel": "instance",
			}},
			// honorLabels stays false, so that no host can pass for another one. Of what the exporter says, only the namespace of
			// a container's pod replaces a label of the target.
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

// rules return the recording rules and the alerts.
func rules(namespace string) owned.Object {
	return owned.Object{
		Identity: ofKind(ruleKind, namespace, RulesName),
		Fill: func(object client.Object) {
			fillSpec(object, rulesSpec(namespace))
			setLabels(object, map[string]string{"prometheus": "k8s", "role": "alert-rules"})
		},
		Adopt: legacy(func(object client.Object) bool {
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

func ofKind(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
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
