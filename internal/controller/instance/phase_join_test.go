package instance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// liveLists counts the lists from the API server.
type liveLists struct {
	client.Reader
	count int
}

func (l *liveLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.count++
	return l.Reader.List(ctx, list, options...)
}

// If all hosts of a fleet join at once, each check must not list the complete fleet.
func TestJoin_WaitForNodeListsNothing(t *testing.T) {
	x, _, _ := hostToJoin(t, "None")
	x.reconcileUntil("the kubelet's certificate", hasSummary(v1alpha1.ReasonNodeNotRegistered))
	lists := &liveLists{Reader: x.Live}
	x.Live = lists
	for range 3 {
		x.clock.Step(time.Second)
		if instance, _ := x.reconcile(); instance.Status.Summary != v1alpha1.ReasonNodeNotRegistered || lists.count > 0 {
			t.Fatalf("it is %s, after %d lists", instance.Status.Summary, lists.count)
		}
	}
}

// An apply of many minutes may happen between the signature and the registration of the Node, so the owner of the
// name is checked again.
func TestJoin_NameOwnerCheckedAgainBeforeBind(t *testing.T) {
	x := newTrial(t)
	instance := listedInstance()
	instance.Status.NodeRef = &v1alpha1.NodeReference{Name: machine, Confirmed: true}
	x.createInstance(instance)
	phase := x.newDependencies().join
	reconcile := func() *scope.Scope {
		s := x.newScope(x.getInstance())
		s.Cluster = *x.facts
		return s
	}
	if o := phase.checkNodeName(t.Context(), reconcile()); o != nil {
		t.Fatalf("%+v", o)
	}
	registered := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: machine}}
	for _, object := range []client.Object{registeredNode(), registered} {
		if err := x.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if _, o := phase.getOwnNode(t.Context(), reconcile()); o == nil || o.Reason != v1alpha1.ReasonNameConflict {
		t.Errorf("in the way is %+v", o)
	}
}

// kubeletRuns selects the starts of the kubelet.
func kubeletRuns(e fake.Entry) bool { return e.Kind == fake.KindService && e.Detail == "kubelet runs" }

// A kubelet registers its Node only when started. If an administrator deletes a Node that the operator has not
// observed, or while the operator is not running, the kubelet never registers the Node again.
func TestJoin_KubeletRestartedIfNodeIsMissing(t *testing.T) {
	x, h, _ := hostToJoin(t, "None")
	starts := func() int { return len(h.machine.Journal().Entries(kubeletRuns)) }
	x.reconcileUntil("the kubelet's certificate", hasSummary(v1alpha1.ReasonNodeNotRegistered))
	x.popEvents()
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
	expect("before the limit", registrationTimeout-time.Second, 0)
	expect("at the limit", time.Second, 1)
	if events := strings.Join(x.popEvents(), "\n"); !strings.Contains(events, "NodeRegistrationTimedOut") {
		t.Errorf("the events are:\n%s", events)
	}
	if attempts := x.getSession(x.getInstance()).Attempts; attempts != 1 {
		t.Errorf("%d attempts have failed, want 1", attempts)
	}
	expect("while it has time to register", registrationTimeout-time.Second, 1)
	expect("at the next limit", time.Second, 2)
	x.registerNode()
	x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
}

// A Node and its WindowsInstance are deleted together. The next instance of the host has a running kubelet that
// never registers the Node again.
func TestJoin_KubeletOlderThanInstanceRestarted(t *testing.T) {
	x, h, _ := nodeInService(t, "None")
	starts := func() int { return len(h.machine.Journal().Entries(kubeletRuns)) }
	x.clock.Step(registrationTimeout / 2) // a kubelet older than registrationTimeout would be restarted anyway
	for _, object := range []client.Object{x.getNode(), x.getInstance()} {
		if err := x.Client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	x.reconcile()
	again := listedInstance()
	again.UID, again.CreationTimestamp = "the-next", metav1.NewTime(x.clock.Now())
	x.createInstance(again)
	x.popEvents()
	before, start := starts(), x.clock.Now()
	x.reconcileUntil("the Node to be awaited", hasSummary(v1alpha1.ReasonNodeNotRegistered))
	if elapsed := x.clock.Since(start); elapsed > time.Minute || starts()-before != 1 {
		t.Errorf("the kubelet was started %d times within %s", starts()-before, elapsed)
	}
	if events := strings.Join(x.popEvents(), "\n"); !strings.Contains(events, "does not exist, although the kubelet has run for 2m") {
		t.Errorf("the events are:\n%s", events)
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
	x.registerNode()
	x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
}

// An operator that restarts more often than every five minutes never completes a wait of that length.
func TestJoin_KubeletRestartedDespiteOperatorRestarts(t *testing.T) {
	x, h, _ := hostToJoin(t, "None")
	starts := func() int { return len(h.machine.Journal().Entries(kubeletRuns)) }
	x.reconcileUntil("the kubelet's certificate", hasSummary(v1alpha1.ReasonNodeNotRegistered))
	begun := starts()
	for range 4 {
		x.clock.Step(registrationTimeout/4 + time.Second)
		x.restartOperator()
		x.reconcile()
	}
	if now := starts() - begun; now != 1 {
		t.Errorf("the kubelet was started again %d times, want 1", now)
	}
}

// The clock of a host is often set some minutes after its start. A new kubelet must not appear old because of
// that.
func TestJoin_ClockChangeDoesNotRestartKubelet(t *testing.T) {
	x, h, _ := hostToJoin(t, "None")
	h.machine.OnOperation(func(fake.Operation) error {
		if len(h.machine.Journal().Entries(kubeletRuns)) > 0 {
			h.machine.SetClockOffset(registrationTimeout + time.Minute)
		}
		return nil
	})
	x.reconcileUntil("the kubelet's certificate", hasSummary(v1alpha1.ReasonNodeNotRegistered))
	x.reconcile()
	if instance := x.getInstance(); instance.Status.RegistrationID != "" || len(h.machine.Journal().Entries(kubeletRuns)) != 1 {
		t.Errorf("the kubelet is to register its Node again: %+v", instance.Status)
	}
}

// The kubelet registers the Node, and the Node gets a pod subnet, during the apply that has started the kubelet.
// The result of that apply counts although another NodeSpec is desired at the end: the host is not inspected
// again, and nothing is applied twice.
func TestJoin_ApplyResultUsedDespiteNewerSpec(t *testing.T) {
	x, h, _ := hostToJoin(t, "None")
	x.reconcileUntil("the kubelet's certificate", hasSummary(v1alpha1.ReasonNodeNotRegistered))
	withoutNode := h.agentCommands()

	x, h, _ = hostToJoin(t, "None")
	h.machine.OnOperation(func(o fake.Operation) error {
		if len(h.machine.Journal().Entries(kubeletRuns)) == 0 || x.getNode() != nil {
			return nil
		}
		return x.Client.Create(t.Context(), x.newRegisteredNode())
	})
	x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
	want := append(withoutNode, "apply", "verify")
	if got := h.agentCommands(); !slices.Equal(got, want) {
		t.Errorf("the agent ran %q, want %q", got, want)
	}
}

// A reconcile may end early, because of a conflict or an unreadable cluster. The result of the agent is kept for
// the next reconcile, unless the address of the host has changed.
func TestJoin_ApplyResultKeptAfterEarlyReturn(t *testing.T) {
	x, h, _ := hostToJoin(t, "None")
	x.reconcileUntil("the kubelet's certificate", hasSummary(v1alpha1.ReasonNodeNotRegistered))
	want := h.agentCommands()
	for name, c := range map[string]struct {
		address string
		dials   int
	}{
		"the host has the same address": {"10.0.128.7", 0},
		"the host has another address":  {"10.0.128.8", 1},
	} {
		t.Run(name, func(t *testing.T) {
			x, h, _ := hostToJoin(t, "None")
			cluster := &flakyCluster{ClusterSource: x.Cluster}
			x.Cluster = cluster
			var once sync.Once
			h.machine.OnOperation(func(fake.Operation) error {
				if len(h.machine.Journal().Entries(kubeletRuns)) > 0 {
					once.Do(func() { cluster.unreadable.Store(true) })
				}
				return nil
			})
			x.reconcileUntil("the cluster to be unreadable", func(*v1alpha1.WindowsInstance) bool { return cluster.unreadable.Load() })
			cluster.unreadable.Store(false)
			x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.Address = c.address })
			dials := x.countDials()
			x.reconcileUntil("the kubelet's certificate", hasSummary(v1alpha1.ReasonNodeNotRegistered))
			if x.countDials()-dials != c.dials {
				t.Errorf("the host was connected to %d times, want %d", x.countDials()-dials, c.dials)
			}
			if got := h.agentCommands(); c.dials == 0 && !slices.Equal(got, want) {
				t.Errorf("the agent ran %q, want %q", got, want)
			}
		})
	}
}

// flakyCluster is a cluster that may be unreadable.
type flakyCluster struct {
	ClusterSource
	unreadable atomic.Bool
}

func (s *flakyCluster) Current() (nodespec.Cluster, error) {
	if s.unreadable.Load() {
		return nodespec.Cluster{}, errors.New("etcdserver: leader changed")
	}
	return s.ClusterSource.Current()
}

// The cache may receive a Node after the operator has bound it.
func TestJoin_NodeMissingInCacheNotLost(t *testing.T) {
	x, _, _ := nodeInService(t, "None")
	api, ok := x.Client.(client.WithWatch)
	if !ok {
		t.Fatalf("it is a %T", x.Client)
	}
	x.Live = api
	x.Client = interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, isNode := object.(*corev1.Node); isNode {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, key.Name)
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.SpecDigest = "" })
	x.reconcile()
	if instance := x.getInstance(); instance.Status.RegistrationID != "" || instance.Status.NodeRef.UID == "" {
		t.Errorf("the kubelet is to register it again: %+v", instance.Status.NodeRef)
	}
}
