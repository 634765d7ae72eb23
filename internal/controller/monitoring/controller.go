// Package monitoring configures the cluster's Prometheus to scrape the exporters of Windows nodes and the
// operator. It defines recording rules, alerts and a dashboard. The package owns the Service and the
// EndpointSlices of the exporters, two ServiceMonitors, a PrometheusRule and the ConfigMap of the dashboard,
// and no other object. Nodes and WindowsInstances are only read.
package monitoring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/internal/controller/owned"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=system,resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsinstances,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,namespace=system,resources=deployments,resourceNames=windows-machine-config-operator,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=system,resources=events,verbs=create;patch

// All rights except for EndpointSlices are restricted by name, including create: see package owned. OpenShift
// requires the right to delete a Service to remove an owner reference. Endpoints of earlier releases are
// deleted. The number of EndpointSlices depends on the number of nodes.
// +kubebuilder:rbac:groups="",namespace=system,resources=services,resourceNames=windows-exporter,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",namespace=system,resources=endpoints,resourceNames=windows-exporter,verbs=get;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,namespace=system,resources=endpointslices,verbs=list;create;update;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,namespace=system,resources=servicemonitors,resourceNames=windows-exporter;windows-machine-config-operator,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,namespace=system,resources=prometheusrules,resourceNames=windows-prometheus-k8s-rules,verbs=get;create;patch;delete

// The console reads dashboards from one namespace, where OLM creates no Role.
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=dashboard-windows-nodes,verbs=get;create;patch;delete

// reconcileInterval is the interval between complete reconciles without a change of a node. They detect changes of the
// namespace's label, of the kinds of the prometheus-operator, and of the objects by other clients. A reconcile
// costs eight reads, and keeps nothing in memory.
const reconcileInterval = time.Minute

// onlyAddresses requests a reconcile of the addresses alone: nodes affect nothing else. It costs no read if the
// addresses equal the last written addresses.
var onlyAddresses = ctrl.Request{NamespacedName: types.NamespacedName{Name: "addresses"}}

// Reconciler maintains the objects. Only one goroutine may use it.
type Reconciler struct {
	// Client reads Nodes and WindowsInstances from the manager's cache.
	Client client.Client
	// Live reads the API server.
	Live client.Reader
	// Namespace is the namespace of the operator.
	Namespace  string
	Events     events.EventRecorder
	Conditions *operatorcondition.Writer
	Clock      clock.WithTicker

	reported recorder.OperatorState
	// written holds the addresses that were last found or written; nil after a failure.
	written *[]address
	// owned is true if the operator owned the EndpointSlices at the last complete reconcile.
	owned bool
	// unreachable holds the reports about Nodes by the UID of the Node.
	unreachable recorder.Once[types.UID]
}

// Reconcile reconciles all objects, or the addresses alone.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if request == onlyAddresses {
		return requeueOnConflict(r.reconcileAddresses(ctx))
	}
	namespace := &corev1.Namespace{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: r.Namespace}, namespace)
	if apierrors.IsNotFound(err) || err == nil && !namespace.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the operator is being uninstalled; deleting the namespace deletes the objects
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read Namespace %s of the operator: %w", r.Namespace, err)
	}
	s, err := r.reconcileObjects(ctx, namespace)
	if err != nil {
		return requeueOnConflict(err)
	}
	if err := r.reportState(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: reconcileInterval}, nil
}

// requeueOnConflict requeues after a conflict with another writer.
func requeueOnConflict(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: queue.MinDelay}, nil
	}
	return ctrl.Result{}, err
}

// reconcileAddresses writes changed addresses. The next complete reconcile detects and reports changes of the objects
// by other clients. It also writes the addresses if the operator did not own the objects.
func (r *Reconciler) reconcileAddresses(ctx context.Context) error {
	addresses, instances, without, err := r.listDesiredAddresses(ctx)
	if err != nil || !r.owned {
		return err
	}
	r.reportUnreachable(without, instances)
	if r.written != nil && slices.Equal(addresses, *r.written) {
		return nil
	}
	return r.writeAddresses(ctx, addresses)
}

// reconcileObjects reconciles all objects. The Service and the addresses exist without the namespace label as well:
// the service CA issues the exporters' certificate for the Service, and with the addresses only the label is missing.
func (r *Reconciler) reconcileObjects(ctx context.Context, namespace *corev1.Namespace) (monitoringState, error) {
	r.owned = false
	exporters := newService(r.Namespace)
	switch state, err := r.newKeeper().Keep(ctx, exporters); {
	case err != nil:
		return monitoringState{}, err
	case state == owned.Foreign:
		return conflictState(false, exporters), nil // the operator must not set the addresses of a foreign Service
	}
	if err := r.keepAddresses(ctx); err != nil {
		return monitoringState{}, err
	}
	asked := []owned.Object{newServiceMonitor(r.Namespace), newOperatorMonitor(r.Namespace), newRules(r.Namespace), newDashboard(namespace)}
	if namespace.Labels[labelMonitoring] != "true" {
		return unlabeledState(r.Namespace), r.deleteAll(ctx, append(asked, earlierEndpoints(r.Namespace)))
	}
	states, err := r.keepAll(ctx, asked)
	switch {
	case err != nil:
		return monitoringState{}, err
	case states[0] == owned.Foreign:
		return conflictState(false, asked[0]), nil
	case slices.Contains(states[:3], owned.NotServed): // the console is optional
		return apiMissingState(), nil
	}
	if states[0] == owned.Unchanged { // until this reconcile, Prometheus may read the Endpoints
		if err := r.newKeeper().Delete(ctx, earlierEndpoints(r.Namespace)); err != nil {
			return monitoringState{}, err
		}
	}
	if i := slices.Index(states, owned.Foreign); i >= 0 {
		return conflictState(true, asked[i]), nil
	}
	return enabledState(), nil
}

func (r *Reconciler) newKeeper() owned.Keeper { return owned.Keeper{Client: r.Client, Live: r.Live} }

// keepAll creates and corrects as many of the objects as possible.
func (r *Reconciler) keepAll(ctx context.Context, all []owned.Object) ([]owned.State, error) {
	states, errs := make([]owned.State, len(all)), make([]error, len(all))
	for i, object := range all {
		states[i], errs[i] = r.newKeeper().Keep(ctx, object)
	}
	return states, errors.Join(errs...)
}

// deleteAll deletes as many of the objects as possible.
func (r *Reconciler) deleteAll(ctx context.Context, all []owned.Object) error {
	var errs []error
	for _, object := range all {
		errs = append(errs, r.newKeeper().Delete(ctx, object))
	}
	return errors.Join(errs...)
}

// keepAddresses keeps the EndpointSlices equal to the nodes in service.
func (r *Reconciler) keepAddresses(ctx context.Context) error {
	addresses, instances, without, err := r.listDesiredAddresses(ctx)
	if err != nil {
		return err
	}
	r.reportUnreachable(without, instances)
	return r.writeAddresses(ctx, addresses)
}

// listDesiredAddresses returns the addresses of the nodes in service, and the nodes in service without an address.
// The cache of Nodes and instances is complete, because the controller starts after the cache: a restart of the
// operator removes no address.
func (r *Reconciler) listDesiredAddresses(ctx context.Context) ([]address, []v1alpha1.WindowsInstance, []unreachable, error) {
	var nodes corev1.NodeList
	var instances v1alpha1.WindowsInstanceList
	// Deep copies are unnecessary: the objects are only read, and there can be a thousand.
	if err := errors.Join(r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy),
		r.Client.List(ctx, &instances, client.InNamespace(r.Namespace), client.UnsafeDisableDeepCopy)); err != nil {
		return nil, nil, nil, fmt.Errorf("list Nodes and WindowsInstances: %w", err)
	}
	addresses, without := desiredAddresses(nodes.Items, instances.Items)
	return addresses, instances.Items, without, nil
}

// writeAddresses writes the EndpointSlices that differ. A conflict with another writer returns an error, and
// the operator reconciles again.
func (r *Reconciler) writeAddresses(ctx context.Context, addresses []address) error {
	r.written = nil
	var present discoveryv1.EndpointSliceList
	if err := r.Live.List(ctx, &present, client.InNamespace(r.Namespace)); err != nil {
		return fmt.Errorf("list EndpointSlices in namespace %s: %w", r.Namespace, err)
	}
	changes := diffSlices(r.Namespace, present.Items, addresses)
	for _, slice := range changes.write {
		write := r.Client.Create
		if slice.ResourceVersion != "" {
			write = func(ctx context.Context, object client.Object, _ ...client.CreateOption) error {
				return r.Client.Update(ctx, object)
			}
		}
		count := len(slice.Endpoints)
		if err := write(ctx, slice); err != nil {
			return fmt.Errorf("write EndpointSlice %s/%s with the addresses of %d nodes: %w", r.Namespace, slice.Name,
				count, err)
		}
		log.FromContext(ctx).Info("EndpointSlice written", "name", slice.Name, "addresses", count)
	}
	for _, slice := range changes.remove {
		version := slice.ResourceVersion
		err := r.Client.Delete(ctx, slice, client.Preconditions{ResourceVersion: &version})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete EndpointSlice %s/%s without addresses: %w", r.Namespace, slice.Name, err)
		}
	}
	metrics.NodesMonitored.Set(float64(len(addresses)))
	r.written, r.owned = &addresses, true
	return nil
}
