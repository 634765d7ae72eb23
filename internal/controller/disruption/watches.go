package disruption

import (
	"errors"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/fleet"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

const (
	// idleFactor is the minimum delay before the next reconcile, as a multiple of the duration of the last one.
	// Reading a large fleet takes long.
	idleFactor = 10
	// MaxBatchDelay is the maximum time during which changes are collected for one reconcile.
	MaxBatchDelay = 10 * time.Second
)

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("disruption").
		Watches(&v1alpha1.WindowsDisruptionPolicy{}, r.enqueueBatched(), builder.WithPredicates(r.policyChanged())).
		Watches(&corev1.Node{}, r.enqueueBatched(), builder.WithPredicates(queue.Changed(nodeFields), ignoreNew(isJoining))).
		Watches(&v1alpha1.WindowsInstance{}, r.enqueueBatched(), builder.WithPredicates(queue.Changed(instanceFields), ignoreNew(isNotYetInService))).
		WatchesRawSource(queue.AtStart()).
		WithOptions(queue.OptionsOn(r.Clock)).
		Build(r)
	r.controller = c
	return err
}

// WatchMachines makes the controller watch the Machines and MachineSets in a cache.
func (r *Reconciler) WatchMachines(machines cache.Cache) error {
	return errors.Join(
		r.controller.Watch(queue.OptionalKind(machines, &machinev1beta1.Machine{}, r.enqueueBatched(), queue.Changed(machineFields))),
		r.controller.Watch(queue.OptionalKind(machines, &machinev1beta1.MachineSet{}, r.enqueueBatched(),
			predicate.GenerationChangedPredicate{})),
	)
}

// enqueueBatched enqueues one reconcile for all changes within a short time. The time is longer if a reconcile takes
// long.
func (r *Reconciler) enqueueBatched() handler.EventHandler {
	return queue.EnqueueAfter(ctrl.Request{}, func() time.Duration {
		return min(MaxBatchDelay, max(queue.MinDelay, idleFactor*time.Duration(r.lastReviewDuration.Load())))
	})
}

// policyChanged filters out updates that the last review wrote.
func (r *Reconciler) policyChanged() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		written, _ := r.Gate.reviewed.Load().(string)
		return e.ObjectNew.GetResourceVersion() != written
	}}
}

// ignoreNew filters out new objects that do not count yet.
func ignoreNew[T client.Object](countsNot func(T) bool) predicate.Funcs {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool {
		object, ok := e.Object.(T)
		return !ok || !countsNot(object)
	}}
}

// isJoining reports whether a Node has not been verified since its registration. Regardless of the kubelet's reports,
// no pods are scheduled to this Node. If the host was in service before, it counts as unavailable, because the
// former Node no longer exists.
func isJoining(n *corev1.Node) bool { return nodeidentity.HasStartupTaint(n) }

// isNotYetInService reports whether an instance has never had a node in service, according to its status. A recreated
// instance of a node in service finds the Node later.
func isNotYetInService(i *v1alpha1.WindowsInstance) bool {
	return i.Status.Version == "" && i.Status.FailedChange == nil && ptr.Deref(i.Status.NodeRef, v1alpha1.NodeReference{}).UID == ""
}

// A joining fleet changes dozens of Nodes and instances before they count.
func nodeFields(n *corev1.Node) any {
	if isJoining(n) {
		return nil
	}
	return []any{nodeidentity.IsReady(n), nodeidentity.HasStartupTaint(n), n.Annotations[v1alpha1.AnnotationVersion], n.Status.NodeInfo.KubeletVersion, n.Labels}
}

func instanceFields(i *v1alpha1.WindowsInstance) any {
	if isNotYetInService(i) {
		return []any{i.Spec, i.Annotations[v1alpha1.AnnotationForgetHost]}
	}
	return []any{
		i.Spec, i.Annotations[v1alpha1.AnnotationForgetHost], ptr.Deref(i.Status.NodeRef, v1alpha1.NodeReference{}).Name,
		i.Status.Version, i.Status.ConfigurationDigest, i.Status.FailedChange, i.Status.Readiness,
	}
}

func machineFields(m *machinev1beta1.Machine) any {
	return []any{isDeleting(m), ptr.Deref(m.Status.Phase, ""), fleet.NodeNameOf(m), m.Labels, m.OwnerReferences}
}
