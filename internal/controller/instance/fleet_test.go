package instance

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// objectsRead counts the objects that are read from the cache and from the API server.
type objectsRead struct {
	client.Client
	count *int
}

func (o objectsRead) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	*o.count++
	return o.Client.Get(ctx, key, object, options...)
}

func (o objectsRead) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := o.Client.List(ctx, list, options...)
	*o.count += meta.LenList(list)
	return err
}

// addHosts adds more hosts to the trial, each with a node in service.
func (x *trial) addHosts(otherHosts int) {
	x.t.Helper()
	for i := range otherHosts {
		other := listedInstance()
		other.Name = fmt.Sprintf("other-%d", i)
		other.UID = types.UID(other.Name)
		other.Spec.Address = fmt.Sprintf("10.1.%d.%d", i/250, i%250)
		other.Status.NodeRef = &v1alpha1.NodeReference{Name: other.Name, UID: "uid-" + other.Name, Confirmed: true}
		other.Status.HostKey = &v1alpha1.HostKey{Type: "ssh-ed25519", Key: "key-of-" + other.Name}
		other.Status.Host = &v1alpha1.HostStatus{MachineID: other.Name, Addresses: []string{other.Spec.Address}}
		x.createInstance(other)
		node := readyNode("")
		node.Name, node.UID = other.Name, types.UID("uid-"+other.Name)
		node.Annotations[v1alpha1.AnnotationInstance] = other.Name
		if err := x.Client.Create(x.t.Context(), node); err != nil {
			x.t.Fatal(err)
		}
	}
}

// countReads returns the number of objects that a function reads.
func (x *trial) countReads(something func()) int {
	count := 0
	cached, live := x.Client, x.Live
	x.Client = objectsRead{cached, &count}
	x.Live = objectsRead{live.(client.Client), &count}
	something()
	x.Client, x.Live = cached, live
	return count
}

// A fleet of n hosts has n times as many reconciles as one host. If each reconcile read all hosts, n times n
// objects would be read.
func TestReconcile_ReadsDoNotGrowWithFleet(t *testing.T) {
	for name, measure := range map[string]func(t *testing.T, otherHosts int) int{
		"a pass over a node that is as it should be": func(t *testing.T, otherHosts int) int {
			x := newTrial(t)
			x.asNode(machineInstance(), x.key.Hash())
			x.addHosts(otherHosts)
			return x.countReads(func() {
				if instance, _ := x.reconcile(); instance.Status.Summary != v1alpha1.ReasonReady {
					t.Errorf("it is %s", instance.Status.Summary)
				}
			})
		},
		"a pass over a host that waits for its Node": func(t *testing.T, otherHosts int) int {
			x, _, _ := hostToJoin(t, "None")
			x.reconcileUntil("the kubelet's certificate", hasSummary(v1alpha1.ReasonNodeNotRegistered))
			x.addHosts(otherHosts)
			x.clock.Step(time.Second)
			return x.countReads(func() {
				if instance, _ := x.reconcile(); instance.Status.Summary != v1alpha1.ReasonNodeNotRegistered {
					t.Errorf("it is %s", instance.Status.Summary)
				}
			})
		},
		"a change of a Node": func(t *testing.T, otherHosts int) int {
			x := newTrial(t)
			x.asNode(machineInstance(), x.key.Hash())
			x.addHosts(otherHosts)
			return x.countReads(func() {
				if enqueued := x.nodeToInstances(t.Context(), x.getNode()); len(enqueued) != 1 || enqueued[0].Name != machine {
					t.Errorf("%v are woken", enqueued)
				}
			})
		},
		"a host that becomes known by its key": func(t *testing.T, otherHosts int) int {
			x := newTrial(t)
			x.asNode(machineInstance(), x.key.Hash())
			x.addHosts(otherHosts)
			instance := x.getInstance()
			return x.countReads(func() {
				if enqueued := append(x.instancesWithHostKey(t.Context(), instance), x.instancesOnSameHost(t.Context(), instance)...); len(enqueued) > 0 {
					t.Errorf("%v are woken", enqueued)
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			few, many := measure(t, 10), measure(t, 200)
			if few == 0 || many > few {
				t.Errorf("among 10 hosts %d objects are read, among 200 %d", few, many)
			}
		})
	}
}

// newQueue returns a queue that only counts its requests.
func newQueue(t *testing.T) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	return queue
}

func TestEnqueueSlotWaiters_PolicyWriteEnqueuesCandidates(t *testing.T) {
	const waiting = 200
	x := newTrial(t)
	for i := range waiting {
		other := listedInstance()
		other.Name, other.UID = fmt.Sprintf("other-%d", i), "uid"
		other.Status.DisruptionPending = true
		x.createInstance(other)
	}
	x.createInstance(machineInstance()) // not waiting
	being := func(instances ...string) []v1alpha1.Disruption {
		var list []v1alpha1.Disruption
		for _, instance := range instances {
			list = append(list, v1alpha1.Disruption{Instance: instance, Since: metav1.NewTime(noon)})
		}
		return list
	}
	before := &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Generation: 1},
		Status: v1alpha1.WindowsDisruptionPolicyStatus{Disruptions: being("a", "b")}}
	for name, c := range map[string]struct {
		change   func(*v1alpha1.WindowsDisruptionPolicy)
		enqueued int
	}{
		"one that has begun, nobody": {func(p *v1alpha1.WindowsDisruptionPolicy) {
			p.Status.Disruptions, p.Status.Summary = being("a", "b", "c"), "three"
		}, 0},
		"one that has ended, a few": {func(p *v1alpha1.WindowsDisruptionPolicy) {
			p.Status.Disruptions = being("b")
		}, maxEnqueued},
		"one that has ended while another began, a few": {func(p *v1alpha1.WindowsDisruptionPolicy) {
			p.Status.Disruptions = being("b", "c")
		}, maxEnqueued},
		"a node that works again, a few": {func(p *v1alpha1.WindowsDisruptionPolicy) {
			p.Status.ObservedNodes = []v1alpha1.ObservedNode{{}}
		}, maxEnqueued},
		"other rules, all": {func(p *v1alpha1.WindowsDisruptionPolicy) { p.Generation++ }, waiting},
		"an end of a stop, all": {func(p *v1alpha1.WindowsDisruptionPolicy) {
			p.Status.Failed = 1
		}, waiting},
	} {
		t.Run(name, func(t *testing.T) {
			after, queue := before.DeepCopy(), newQueue(t)
			c.change(after)
			x.enqueueSlotWaiters().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, queue)
			if queue.Len() != c.enqueued {
				t.Errorf("%d are woken, want %d", queue.Len(), c.enqueued)
			}
		})
	}
	t.Run("each who waits is woken by one of several", func(t *testing.T) {
		after, queue := before.DeepCopy(), newQueue(t)
		after.Status.Disruptions = nil
		for i := range 10 {
			x.Jitter = func() float64 { return float64(i) / 10 }
			x.enqueueSlotWaiters().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, queue)
		}
		if queue.Len() != waiting {
			t.Errorf("%d of %d were woken", queue.Len(), waiting)
		}
	})
}
