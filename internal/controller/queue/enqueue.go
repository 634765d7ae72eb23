package queue

import (
	"context"
	"reflect"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// MinDelay is the minimum useful delay of EnqueueAfter, because several objects often change together.
const MinDelay = 300 * time.Millisecond

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Enqueue returns a handler that enqueues the same request for every event. Controllers that reconcile everything
// at once use the empty request.
func Enqueue(request reconcile.Request) handler.EventHandler {
	return EnqueueAfter(request, func() time.Duration { return 0 })
}

// EnqueueAfter is Enqueue with a delay. All events within the delay lead to one request.
func EnqueueAfter(request reconcile.Request, delay func() time.Duration) handler.EventHandler {
	enqueue := func(q requests) { q.AddAfter(request, delay()) }
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q requests) { enqueue(q) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q requests) { enqueue(q) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q requests) { enqueue(q) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q requests) { enqueue(q) },
	}
}

// AtStart returns a source that enqueues the empty request once, when the controller starts. Otherwise a cluster
// without matching objects would not cause any event.
func AtStart() source.Source {
	return source.Func(func(_ context.Context, q requests) error {
		q.Add(reconcile.Request{})
		return nil
	})
}

// Changed returns a predicate that accepts an update only if the fields that a controller reads have changed. Other
// clients write the remaining fields.
func Changed[T client.Object, V any](fields func(T) V) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, ok2 := e.ObjectNew.(T)
		return !ok || !ok2 || before.GetUID() != after.GetUID() || !reflect.DeepEqual(fields(before), fields(after))
	}}
}
