package disruption

import (
	"context"
	"errors"
	"reflect"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/backoff"
	"github.com/windows-machine-config/wmco/internal/controller/fleet"
	"github.com/windows-machine-config/wmco/internal/controller/optional"
	"github.com/windows-machine-config/wmco/internal/policy/nodestate"
)

const (
	// gathering is how long changes are gathered before everything is looked at: many come together.
	gathering = 300 * time.Millisecond
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
		Watches(&v1alpha1.WindowsDisruptionPolicy{}, r.once()).
		Watches(&corev1.Node{}, r.once(), builder.WithPredicates(whenOther(nodeLook))).
		Watches(&v1alpha1.WindowsInstance{}, r.once(), builder.WithPredicates(whenOther(instanceLook))).
		// A cluster may have none of these, and gets its policy all the same.
		WatchesRawSource(source.Func(func(_ context.Context,
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(reconcile.Request{})
			return nil
		})).
		WithOptions(controller.Options{
			RateLimiter: backoff.Limiter(),
			NewQueue: func(name string,
				limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
				return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
					workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: r.Clock})
			},
		}).
		Build(r)
	r.controller = c
	return err
}

// WatchMachines has the controller watch the Machines and MachineSets in a cache.
func (r *Reconciler) WatchMachines(machines cache.Cache) error {
	return errors.Join(
		r.controller.Watch(optional.Kind(machines, &machinev1beta1.Machine{}, r.once(), whenOther(machineLook))),
		r.controller.Watch(optional.Kind(machines, &machinev1beta1.MachineSet{}, r.once(),
			predicate.GenerationChangedPredicate{})),
	)
}

// once asks for one look for all that changes within a short time.
func (r *Reconciler) once() handler.EventHandler {
	ask := func(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		queue.AddAfter(reconcile.Request{}, min(LongestGathering, max(gathering, idleShare*time.Duration(r.took.Load()))))
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q queue) { ask(q) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q queue) { ask(q) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q queue) { ask(q) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { ask(q) },
	}
}

// whenOther lets through the changes of an object that change what this package looks at.
func whenOther[T client.Object](look func(T) any) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, ok2 := e.ObjectNew.(T)
		return !ok || !ok2 || before.GetUID() != after.GetUID() || !reflect.DeepEqual(look(before), look(after))
	}}
}

func nodeLook(n *corev1.Node) any {
	return []any{nodestate.Ready(n), nodestate.Unproven(n), n.Annotations[v1alpha1.AnnotationVersion], n.Status.NodeInfo.KubeletVersion, n.Labels}
}

func instanceLook(i *v1alpha1.WindowsInstance) any {
	return []any{
		i.Spec, i.Annotations[v1alpha1.AnnotationForgetHost], ptr.Deref(i.Status.NodeRef, v1alpha1.NodeReference{}).Name,
		i.Status.Version, i.Status.Configuration, i.Status.FailedChange, i.Status.Readiness,
	}
}

func machineLook(m *machinev1beta1.Machine) any {
	return []any{going(m), ptr.Deref(m.Status.Phase, ""), fleet.NodeNameOf(m), m.Labels, m.OwnerReferences}
}
