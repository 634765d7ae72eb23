package queue

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func newNode(uid types.UID, version string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win", UID: uid, ResourceVersion: version, Labels: labels}}
}

func TestChanged_IgnoresUnreadFields(t *testing.T) {
	p := Changed(func(n *corev1.Node) any { return n.Labels })
	before := newNode("first", "1", map[string]string{"a": "1"})
	for name, c := range map[string]struct {
		after *corev1.Node
		want  bool
	}{
		"a write of something else":             {newNode("first", "2", map[string]string{"a": "1"}), false},
		"a write of what is read":               {newNode("first", "2", map[string]string{"a": "2"}), true},
		"another object of the name, unnoticed": {newNode("other", "2", map[string]string{"a": "1"}), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: c.after}); got != c.want {
				t.Errorf("it is looked at: %t", got)
			}
		})
	}
	if !p.Create(event.CreateEvent{Object: before}) || !p.Delete(event.DeleteEvent{Object: before}) {
		t.Error("an object that comes or goes is not looked at")
	}
}

type delayRecorder struct {
	requests
	delays []time.Duration
}

func (a *delayRecorder) AddAfter(_ reconcile.Request, wait time.Duration) {
	a.delays = append(a.delays, wait)
}

// All events enqueue the same request, which a queue deduplicates.
func TestEnqueueAfter_DelaysEachEvent(t *testing.T) {
	q, wait := &delayRecorder{}, MinDelay
	changes := EnqueueAfter(reconcile.Request{}, func() time.Duration { return wait })
	changes.Create(t.Context(), event.CreateEvent{Object: &corev1.Node{}}, q)
	changes.Update(t.Context(), event.UpdateEvent{}, q)
	wait = time.Second
	changes.Delete(t.Context(), event.DeleteEvent{}, q)
	changes.Generic(t.Context(), event.GenericEvent{}, q)
	if want := []time.Duration{MinDelay, MinDelay, time.Second, time.Second}; !slices.Equal(q.delays, want) {
		t.Errorf("it is asked for after %v, want %v", q.delays, want)
	}
}

func TestOptionsOn_QueueUsesClock(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	options := OptionsOn(clock)
	q := options.NewQueue("test", options.RateLimiter)
	defer q.ShutDown()
	q.AddAfter(reconcile.Request{}, MinDelay)
	if n := q.Len(); n != 0 {
		t.Errorf("%d looks are asked for at once", n)
	}
	clock.Step(MinDelay)
	if _, over := q.Get(); over {
		t.Error("the queue has ended")
	}
}

func TestAtStart_EnqueuesFirstReconcile(t *testing.T) {
	options := OptionsOn(clocktesting.NewFakeClock(time.Unix(0, 0)))
	q := options.NewQueue("test", options.RateLimiter)
	defer q.ShutDown()
	if err := AtStart().Start(t.Context(), q); err != nil || q.Len() != 1 {
		t.Errorf("%d looks, error %v", q.Len(), err)
	}
}
