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

// mostWoken is the maximum number of waiting instances that are enqueued when disruption slots may be free. Of a
// thousand waiting instances, few can acquire a slot, and enqueuing all of them for each free slot would saturate
// the API server. If the slot belongs to the pool of another instance, that instance retries within
// drain.gatePoll.
const mostWoken = 64

// turns enqueues instances that wait for a disruption slot when a slot may be free.
func (r *Reconciler) turns() handler.Funcs {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { r.wakeWaiting(ctx, q, everybody) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { r.wakeWaiting(ctx, q, everybody) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*v1alpha1.WindowsDisruptionPolicy)
			after, ok2 := e.ObjectNew.(*v1alpha1.WindowsDisruptionPolicy)
			if ok && ok2 {
				r.wakeWaiting(ctx, q, wokenBy(before, after))
			}
		},
	}
}

// woken defines which waiting instances are enqueued after a change of the policy.
type woken int

const (
	nobody woken = iota
	some
	everybody
)

// wokenBy returns which instances may now acquire a slot. New rules, or the end of a failed change that had
// blocked all instances, may allow any instance. The end of a disruption, or a change in the number of working
// nodes, may allow some instances. The start of a disruption allows none.
func wokenBy(before, after *v1alpha1.WindowsDisruptionPolicy) woken {
	if before.UID != after.UID || before.Generation != after.Generation || before.Status.Failed != after.Status.Failed {
		return everybody
	}
	ended := slices.ContainsFunc(before.Status.Disruptions, func(d v1alpha1.Disruption) bool {
		return !slices.ContainsFunc(after.Status.Disruptions, func(other v1alpha1.Disruption) bool {
			return equality.Semantic.DeepEqual(d, other)
		})
	})
	if ended || before.Status.Updated != after.Status.Updated ||
		!equality.Semantic.DeepEqual(before.Status.ObservedNodes, after.Status.ObservedNodes) {
		return some
	}
	return nobody
}

func (r *Reconciler) wakeWaiting(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], who woken) {
	if who == nobody {
		return
	}
	waiting, err := r.known().DisruptionPending(ctx)
	if err != nil {
		return
	}
	count, first := len(waiting), 0
	if who == some && count > mostWoken { // a different selection each time
		count, first = mostWoken, int(r.Jitter()*float64(count))
	}
	for i := range count {
		one := &waiting[(first+i)%len(waiting)]
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(one)})
	}
}
