package instance

import (
	"context"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// liveLists counts the lists that are read from the API server.
type liveLists struct {
	client.Reader
	count int
}

func (l *liveLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.count++
	return l.Reader.List(ctx, list, options...)
}

// All hosts of a fleet that join at once would list all of the fleet each time that they look.
func TestToWaitForANodeListsNothing(t *testing.T) {
	x, _, _ := hostToJoin(t, "None")
	x.until("the kubelet's certificate", summarized(v1alpha1.ReasonNodeNotRegistered))
	lists := &liveLists{Reader: x.Live}
	x.Live = lists
	for range 3 {
		x.clock.Step(time.Second)
		if instance, _ := x.reconcile(); instance.Status.Summary != v1alpha1.ReasonNodeNotRegistered || lists.count > 0 {
			t.Fatalf("it is %s, after %d lists", instance.Status.Summary, lists.count)
		}
	}
}

// What a certificate was signed on is known; but an apply comes before the Node is bound, and it may take many minutes.
func TestWhatACertificateWasSignedOnIsReadAgainBeforeTheNodeIsBound(t *testing.T) {
	nobodys := func(*corev1.Node) {}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		took   time.Duration
		again  bool
	}{
		"not after a moment":                  {nobodys, reuseLimit - time.Second, false},
		"after an apply that took its time":   {nobodys, reuseLimit, true},
		"for a Node that says whose it is":    {func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationInstance: "another"} }, 0, true},
		"for a Node that says it is this one": {func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationInstance: machine} }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			instance := listed()
			instance.Status.NodeRef = &v1alpha1.NodeReference{Name: machine, Confirmed: true}
			x.create(instance)
			lists := &liveLists{Reader: x.Live}
			x.Live = lists
			s, phase := x.scope(x.instance()), x.rooms().join
			s.Cluster = *x.facts
			claim, o := phase.mayHaveCertificates(t.Context(), s)
			if o != nil || claim == nil || lists.count == 0 {
				t.Fatalf("%+v; %+v, after %d lists", claim, o, lists.count)
			}
			lists.count = 0
			node := registered()
			c.change(node)
			taken := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: machine}}
			for _, object := range []client.Object{node, taken} {
				if err := x.Client.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			x.clock.Step(c.took)
			_, o = phase.ownNode(t.Context(), s, claim)
			if again := lists.count > 0; again != c.again {
				t.Errorf("it is read again: %t", again)
			}
			if refused := o != nil && o.Reason == v1alpha1.ReasonNameConflict; refused != c.again {
				t.Errorf("in the way is %+v", o)
			}
		})
	}
}

// A kubelet registers its Node only when it starts. An administrator who deletes the Node before the operator has seen
// it, or while the operator is away, leaves a kubelet that would never register it again.
func TestAKubeletWhoseNodeIsNotThereStartsAgain(t *testing.T) {
	x, h, _ := hostToJoin(t, "None")
	starts := func() int {
		return len(h.machine.Journal().Entries(func(e fake.Entry) bool {
			return e.Kind == fake.KindService && e.Detail == "kubelet runs"
		}))
	}
	x.until("the kubelet's certificate", summarized(v1alpha1.ReasonNodeNotRegistered))
	x.told()
	begun := starts()
	if begun == 0 {
		t.Fatal("the kubelet was not started")
	}
	expect := func(when string, after time.Duration, restarts int) {
		t.Helper()
		x.clock.Step(after)
		instance, _ := x.reconcile()
		if instance.Status.Summary != v1alpha1.ReasonNodeNotRegistered {
			t.Fatalf("%s it is %s", when, instance.Status.Summary)
		}
		if now := starts() - begun; now != restarts {
			t.Errorf("%s the kubelet was started again %d times, want %d", when, now, restarts)
		}
	}
	expect("before the limit", registerLimit-time.Second, 0)
	expect("at the limit", time.Second, 1)
	if told := strings.Join(x.told(), "\n"); !strings.Contains(told, "NodeMissing") {
		t.Errorf("the events are:\n%s", told)
	}
	if attempts := x.session(x.instance()).Attempts; attempts != 1 {
		t.Errorf("%d attempts have failed, want 1", attempts)
	}
	expect("while it has time to register", registerLimit-time.Second, 1)
	expect("at the next limit", time.Second, 2)
	x.registers()
	x.until("a Ready node", summarized(v1alpha1.ReasonReady))
}

// A Node and its WindowsInstance are deleted together: the next instance of the host finds a kubelet that runs, and
// would never register the Node by itself.
func TestAKubeletThatIsOlderThanItsInstanceRegistersItsNodeAtOnce(t *testing.T) {
	x, h, _ := nodeInService(t, "None")
	starts := func() int {
		return len(h.machine.Journal().Entries(func(e fake.Entry) bool {
			return e.Kind == fake.KindService && e.Detail == "kubelet runs"
		}))
	}
	x.clock.Step(registerLimit / 2) // that it runs for longer than the limit would be reason enough
	for _, object := range []client.Object{x.node(), x.instance()} {
		if err := x.Client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	x.reconcile()
	again := listed()
	again.UID, again.CreationTimestamp = "the-next", metav1.NewTime(x.clock.Now())
	x.create(again)
	x.told()
	before, began := starts(), x.clock.Now()
	x.until("the Node to be awaited", summarized(v1alpha1.ReasonNodeNotRegistered))
	if took := x.clock.Since(began); took > time.Minute || starts()-before != 1 {
		t.Errorf("the kubelet was started %d times within %s", starts()-before, took)
	}
	if told := strings.Join(x.told(), "\n"); !strings.Contains(told, "does not exist, although the kubelet has run for 2m") {
		t.Errorf("the events are:\n%s", told)
	}
	t.Run("and once", func(t *testing.T) {
		for range 3 {
			x.clock.Step(time.Second)
			x.reconcile()
		}
		if starts()-before != 1 {
			t.Errorf("it was started %d times", starts()-before)
		}
	})
	x.registers()
	x.until("a Ready node", summarized(v1alpha1.ReasonReady))
}

// An operator that restarts more often than every five minutes remembers no wait that is as long.
func TestAKubeletWhoseNodeIsNotThereStartsAgainWhileTheOperatorRestarts(t *testing.T) {
	x, h, _ := hostToJoin(t, "None")
	starts := func() int {
		return len(h.machine.Journal().Entries(func(e fake.Entry) bool {
			return e.Kind == fake.KindService && e.Detail == "kubelet runs"
		}))
	}
	x.until("the kubelet's certificate", summarized(v1alpha1.ReasonNodeNotRegistered))
	begun := starts()
	for range 4 {
		x.clock.Step(registerLimit/4 + time.Second)
		x.sessions.Drop(machine)
		x.Hosts.CloseAll()
		x.Hosts = remote.NewPool(&remote.Dialer{Dial: x.dial, Limits: onABusyMachine()})
		x.reconcile()
	}
	if now := starts() - begun; now != 1 {
		t.Errorf("the kubelet was started again %d times, want 1", now)
	}
}
