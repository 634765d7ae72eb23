package monitoring

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/backoff"
	"github.com/windows-machine-config/wmco/internal/policy/ownership"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("monitoring").
		Watches(&corev1.Node{}, gathered(), builder.WithPredicates(whenOther(nodeLook))).
		Watches(&v1alpha1.WindowsInstance{}, gathered(), builder.WithPredicates(whenOther(instanceLook))).
		// A cluster may have no node yet, and gets its Service all the same.
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			q.Add(reconcile.Request{})
			return nil
		})).
		WithOptions(controller.Options{
			RateLimiter: backoff.Limiter(),
			NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) queue {
				return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
					workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: r.Clock})
			},
		}).
		Complete(r)
}

// gathered asks for one look for all that changes within a short time.
func gathered() handler.EventHandler {
	ask := func(q queue) { q.AddAfter(reconcile.Request{}, gathering) }
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q queue) { ask(q) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q queue) { ask(q) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q queue) { ask(q) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { ask(q) },
	}
}

// whenOther lets through the changes of an object that change what wanted looks at. Kubelets and the operator write to
// Nodes and instances for other reasons too.
func whenOther[T client.Object](look func(T) any) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, ok2 := e.ObjectNew.(T)
		return !ok || !ok2 || before.GetUID() != after.GetUID() || !reflect.DeepEqual(look(before), look(after))
	}}
}

func nodeLook(node *corev1.Node) any {
	return []any{inService(node), internalIPv4(node), node.Annotations[v1alpha1.AnnotationInstance]}
}

func instanceLook(instance *v1alpha1.WindowsInstance) any {
	return []any{leaves(instance), ownership.ConfirmedName(instance)}
}
