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

// mostWoken is how many of those that wait for their turn ask again when places may have become free: of a thousand
// that wait, few can have one. All would have all the API server's time if each place that gets free woke them. It may be
// for none of those that are woken, but for one of another pool: the others ask within turn.gatePoll.
const mostWoken = 64

// turns wakes those that wait for their turn when it may have come.
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

// woken is who asks again after a change of the policy.
type woken int

const (
	nobody woken = iota
	some
	everybody
)

// wokenBy returns who may have the turn now and had it not before. Other rules may let anyone through, and so may a
// change that has failed no more, which had stopped all others; a disturbance that has ended, or a node that works or
// does not, a few; one that has begun, nobody.
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
	if who == some && count > mostWoken { // other ones each time
		count, first = mostWoken, int(r.Jitter()*float64(count))
	}
	for i := range count {
		one := &waiting[(first+i)%len(waiting)]
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(one)})
	}
}
