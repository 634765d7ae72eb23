package main

import (
	"context"
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// monitored is the label of the namespaces that OpenShift's Prometheus searches for ServiceMonitors and rules.
const monitored = "openshift.io/cluster-monitoring=true"

// objects are the inputs of a configuration.
type objects struct {
	monitors []*monitoringv1.ServiceMonitor
	rules    []*monitoringv1.PrometheusRule
}

// read reads the objects of all monitored namespaces.
func read(ctx context.Context, client dynamic.Interface) (found objects, err error) {
	namespaces, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		List(ctx, metav1.ListOptions{LabelSelector: monitored})
	if err != nil {
		return objects{}, fmt.Errorf("list the namespaces with the label %s: %w", monitored, err)
	}
	for _, namespace := range namespaces.Items {
		monitors, err := list[monitoringv1.ServiceMonitor](ctx, client, namespace.GetName(), monitoringv1.ServiceMonitorName)
		if err != nil {
			return objects{}, err
		}
		rules, err := list[monitoringv1.PrometheusRule](ctx, client, namespace.GetName(), monitoringv1.PrometheusRuleName)
		if err != nil {
			return objects{}, err
		}
		found.monitors = append(found.monitors, monitors...)
		found.rules = append(found.rules, rules...)
	}
	return found, nil
}

// list returns the objects of a kind in a namespace.
func list[T any](ctx context.Context, client dynamic.Interface, namespace, resource string) (all []*T, err error) {
	kind := schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: monitoringv1.Version, Resource: resource}
	found, err := client.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s in namespace %s: %w", resource, namespace, err)
	}
	for _, item := range found.Items {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, object); err != nil {
			return nil, fmt.Errorf("read %s/%s of %s: %w", namespace, item.GetName(), resource, err)
		}
		all = append(all, object)
	}
	return all, nil
}
