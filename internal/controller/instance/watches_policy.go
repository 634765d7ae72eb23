package instance

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// maxEnqueued is the maximum number of waiting instances that are enqueued when disruption slots may be free. Of a
// thousand waiting instances, few can acquire a slot, and enqueuing all of them for each free slot would saturate the
// API server. If the slot belongs to the pool of another instance, that instance retries within
// drain.gatePollInterval.
const maxEnqueued = 64

// enqueueSlotWaiters enqueues instances that wait for a disruption slot when a slot may be free.
func (r *Reconciler) enqueueSlotWaiters() handler.Funcs {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { r.enqueueWaiting(ctx, q, enqueueAll) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { r.enqueueWaiting(ctx, q, enqueueAll) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*v1alpha1.WindowsDisruptionPolicy)
			after, ok2 := e.ObjectNew.(*v1alpha1.WindowsDisruptionPolicy)
			if ok && ok2 {
				r.enqueueWaiting(ctx, q, enqueueScopeFor(before, after))
			}
		},
	}
}

// enqueueScope defines which waiting instances are enqueued after a change of the policy.
type enqueueScope int

const (
	enqueueNone enqueueScope = iota
	enqueueSome
	enqueueAll
)

// enqueueScopeFor returns which instances may now acquire a slot. New rules, or the end of a failed change that had
// blocked all instances, may allow any instance. The end of a disruption, or a change in the number of working
// nodes, may allow some instances. The start of a disruption allows none.
func enqueueScopeFor(before, after *v1alpha1.WindowsDisruptionPolicy) enqueueScope {
	if before.UID != after.UID || before.Generation != after.Generation || before.Status.Failed != after.Status.Failed {
		return enqueueAll
	}
	ended := slices.ContainsFunc(before.Status.Disruptions, func(d v1alpha1.Disruption) bool {
		return !slices.ContainsFunc(after.Status.Disruptions, func(other v1alpha1.Disruption) bool {
			return equality.Semantic.DeepEqual(d, other)
		})
	})
	if ended || before.Status.Updated != after.Status.Updated ||
		!equality.Semantic.DeepEqual(before.Status.ObservedNodes, after.Status.ObservedNodes) {
		return enqueueSome
	}
	return enqueueNone
}

func (r *Reconciler) enqueueWaiting(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], who enqueueScope) {
	if who == enqueueNone {
		return
	}
	waiting, err := r.cachedInstances().DisruptionPending(ctx)
	if err != nil {
		return
	}
	count, first := len(waiting), 0
	if who == enqueueSome && count > maxEnqueued { // a different selection each time
		count, first = maxEnqueued, int(r.Jitter()*float64(count))
	}
	for i := range count {
		one := &waiting[(first+i)%len(waiting)]
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(one)})
	}
}
