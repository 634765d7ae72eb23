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
	// idleShare is how many times as long as the last look took the next one waits: where there are many hosts, looking
	// takes long.
	idleShare = 10
	// LongestGathering is the longest time that changes are gathered.
	LongestGathering = 10 * time.Second
)

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("disruption").
		Watches(&v1alpha1.WindowsDisruptionPolicy{}, r.once(), builder.WithPredicates(r.byOthers())).
		Watches(&corev1.Node{}, r.once(), builder.WithPredicates(queue.Changed(nodeLook), unlessNew(joining))).
		Watches(&v1alpha1.WindowsInstance{}, r.once(), builder.WithPredicates(queue.Changed(instanceLook), unlessNew(unproven))).
		WatchesRawSource(queue.AtStart()).
		WithOptions(queue.OptionsOn(r.Clock)).
		Build(r)
	r.controller = c
	return err
}

// WatchMachines has the controller watch the Machines and MachineSets in a cache.
func (r *Reconciler) WatchMachines(machines cache.Cache) error {
	return errors.Join(
		r.controller.Watch(queue.OptionalKind(machines, &machinev1beta1.Machine{}, r.once(), queue.Changed(machineLook))),
		r.controller.Watch(queue.OptionalKind(machines, &machinev1beta1.MachineSet{}, r.once(),
			predicate.GenerationChangedPredicate{})),
	)
}

// once asks for one look for all that changes within a short time, longer where a look takes long.
func (r *Reconciler) once() handler.EventHandler {
	return queue.EnqueueAfter(ctrl.Request{}, func() time.Duration {
		return min(LongestGathering, max(queue.MinDelay, idleShare*time.Duration(r.took.Load())))
	})
}

// byOthers lets through what was not written by the last look itself.
func (r *Reconciler) byOthers() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		written, _ := r.Gate.reviewed.Load().(string)
		return e.ObjectNew.GetResourceVersion() != written
	}}
}

// unlessNew leaves out an object that is new and of which nothing counts yet.
func unlessNew[T client.Object](countsNot func(T) bool) predicate.Funcs {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool {
		object, ok := e.Object.(T)
		return !ok || !countsNot(object)
	}}
}

// joining reports whether a Node was not proven since it is registered: whatever its kubelet says, it takes no pods. If
// its host was in service before, it counts as unavailable, because its former Node is gone.
func joining(n *corev1.Node) bool { return nodeidentity.Unproven(n) }

// unproven reports whether an instance had no node in service yet, as far as it knows itself. One that was made again
// for a node in service learns whose Node it has.
func unproven(i *v1alpha1.WindowsInstance) bool {
	return i.Status.Version == "" && i.Status.FailedChange == nil && ptr.Deref(i.Status.NodeRef, v1alpha1.NodeReference{}).UID == ""
}

// A fleet that joins changes its Nodes and instances by the dozen until they count.
func nodeLook(n *corev1.Node) any {
	if joining(n) {
		return nil
	}
	return []any{nodeidentity.Ready(n), nodeidentity.Unproven(n), n.Annotations[v1alpha1.AnnotationVersion], n.Status.NodeInfo.KubeletVersion, n.Labels}
}

func instanceLook(i *v1alpha1.WindowsInstance) any {
	if unproven(i) {
		return []any{i.Spec, i.Annotations[v1alpha1.AnnotationForgetHost]}
	}
	return []any{
		i.Spec, i.Annotations[v1alpha1.AnnotationForgetHost], ptr.Deref(i.Status.NodeRef, v1alpha1.NodeReference{}).Name,
		i.Status.Version, i.Status.ConfigurationDigest, i.Status.FailedChange, i.Status.Readiness,
	}
}

func machineLook(m *machinev1beta1.Machine) any {
	return []any{going(m), ptr.Deref(m.Status.Phase, ""), fleet.NodeNameOf(m), m.Labels, m.OwnerReferences}
}
