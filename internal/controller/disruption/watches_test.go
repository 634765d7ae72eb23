package disruption

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
)

// A review reads the complete fleet. No decision depends on a host that is not a node yet.
func TestWatches_JoiningHostReviewedOnceVerified(t *testing.T) {
	nodes := predicate.And[client.Object](queue.Changed(nodeFields), ignoreNew(isJoining))
	instances := predicate.And[client.Object](queue.Changed(instanceFields), ignoreNew(isNotYetInService))
	node := func(change ...func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1", Labels: map[string]string{}}}
		n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNotReady}}
		for _, each := range change {
			each(n)
		}
		return n
	}
	instance := func(change ...func(*v1alpha1.WindowsInstance)) *v1alpha1.WindowsInstance {
		i := &v1alpha1.WindowsInstance{}
		for _, each := range change {
			each(i)
		}
		return i
	}
	ready := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	proven := func(n *corev1.Node) { n.Spec.Taints = nil }
	claims := func(i *v1alpha1.WindowsInstance) { i.Status.NodeRef = &v1alpha1.NodeReference{Name: "win-1"} }
	bound := func(i *v1alpha1.WindowsInstance) { claims(i); i.Status.NodeRef.UID = "uid" }
	version := func(i *v1alpha1.WindowsInstance) { i.Status.Version = "12" }
	for name, c := range map[string]struct {
		before, after client.Object
		enqueued      bool
	}{
		"a Node that registers":                               {nil, node(), false},
		"one that is Ready before it is proven":               {node(), node(ready), false},
		"one that was proven":                                 {node(ready), node(ready, proven), true},
		"one in service that is not Ready":                    {node(ready, proven), node(proven), true},
		"one in service that is seen for the first time":      {nil, node(proven), true},
		"an instance that is made":                            {nil, instance(), false},
		"one that claims a name":                              {instance(), instance(claims), false},
		"one that was made again and knows its Node":          {instance(), instance(bound), true},
		"one whose node was proven":                           {instance(claims), instance(bound, version), true},
		"one with a node in service, seen for the first time": {nil, instance(version), true},
		"one that is to be removed before it has become a node": {instance(), instance(func(i *v1alpha1.WindowsInstance) {
			i.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			predicates := nodes
			if _, ok := c.after.(*v1alpha1.WindowsInstance); ok {
				predicates = instances
			}
			enqueued := false
			if c.before == nil {
				enqueued = predicates.Create(event.CreateEvent{Object: c.after})
			} else {
				enqueued = predicates.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after})
			}
			if enqueued != c.enqueued {
				t.Errorf("a look follows: %t", enqueued)
			}
		})
	}
}

func TestWatches_OwnWriteTriggersNoReview(t *testing.T) {
	r := &Reconciler{Gate: NewGate(Options{})}
	policy := func(version string) *v1alpha1.WindowsDisruptionPolicy {
		return &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	follows := func() bool {
		return r.policyChanged().Update(event.UpdateEvent{ObjectOld: policy("1"), ObjectNew: policy("2")})
	}
	if !follows() {
		t.Error("before the first look, a change causes none")
	}
	if r.Gate.reviewed.Store("2"); follows() {
		t.Error("a look follows from its own write")
	}
	if r.Gate.reviewed.Store("3"); !follows() {
		t.Error("none follows from the write of another")
	}
}
