// Package gather is for controllers that look at everything at once: they look once for all that changes within a short
// time, at changes of what they read and no others, and once at the start.
package gather

import (
	"context"
	"reflect"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/windows-machine-config/wmco/internal/controller/backoff"
)

// Least is how long changes are gathered at least: many come together.
const Least = 300 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Changes asks for one look for all that changes until the wait is over.
func Changes(wait func() time.Duration) handler.EventHandler {
	return ChangesOf(reconcile.Request{}, wait)
}

// ChangesOf is Changes for a look that is not the one at everything.
func ChangesOf(look reconcile.Request, wait func() time.Duration) handler.EventHandler {
	ask := func(q queue) { q.AddAfter(look, wait()) }
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q queue) { ask(q) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q queue) { ask(q) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q queue) { ask(q) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { ask(q) },
	}
}

// Start asks for the first look: a cluster may have nothing yet whose change would.
func Start() source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		q.Add(reconcile.Request{})
		return nil
	})
}

// WhenOther lets through the changes of an object that change what is looked at. Others write to it for other reasons.
func WhenOther[T client.Object, V any](look func(T) V) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, ok2 := e.ObjectNew.(T)
		return !ok || !ok2 || before.GetUID() != after.GetUID() || !reflect.DeepEqual(look(before), look(after))
	}}
}

// Options returns the options of such a controller, with a queue that waits by the clock.
func Options(c clock.WithTicker) controller.Options { return backoff.OptionsOn(c) }
