package machine

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func updateEvent(before, after *machinev1beta1.Machine) event.UpdateEvent {
	return event.UpdateEvent{ObjectOld: before, ObjectNew: after}
}

// bench is a reconciler on an API server in memory. Its cache contains all objects except unlabeled Machines.
type bench struct {
	t          *testing.T
	reconciler *Reconciler
	api        client.Client
	events     *events.FakeRecorder
	writes     int
	// liveGet, clusterErr and createErr are injected errors.
	liveGet, clusterErr, createErr error
	podNetworks                    []string
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(machinev1beta1.Install(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, events: events.NewFakeRecorder(100)}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	b.api = api
	cached := interceptor.NewClient(api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			b.writes++
			if b.createErr != nil {
				return b.createErr
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			b.writes++
			return c.Patch(ctx, o, p, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, ok := l.(*machinev1beta1.MachineList); ok {
				opts = append(opts, client.MatchingLabelsSelector{Selector: windowsMachines()})
			}
			return c.List(ctx, l, opts...)
		},
	})
	live := interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			if b.liveGet != nil {
				return b.liveGet
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	b.reconciler = &Reconciler{Client: cached, Machines: cached, Live: live, Namespace: namespace, Events: b.events,
		Cluster: func() (nodespec.Cluster, error) {
			return nodespec.Cluster{Platform: "AWS", Network: nodespec.ClusterNetwork{HybridClusterNetworks: b.podNetworks}},
				b.clusterErr
		}}
	return b
}

func (b *bench) reconcile() (ctrl.Result, error) {
	b.writes = 0
	return b.reconciler.Reconcile(b.t.Context(), ctrl.Request{})
}

func (b *bench) mustReconcile() ctrl.Result {
	b.t.Helper()
	result, err := b.reconcile()
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

func (b *bench) desiredState(name string) v1alpha1.DesiredState {
	b.t.Helper()
	instance := &v1alpha1.WindowsInstance{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, instance); err != nil {
		b.t.Fatal(err)
	}
	return instance.Spec.DesiredState
}

func (b *bench) drainEvents() (recorded []string) {
	for {
		select {
		case e := <-b.events.Events:
			recorded = append(recorded, e)
		default:
			return recorded
		}
	}
}

func awsInstance(machine *machinev1beta1.Machine) *v1alpha1.WindowsInstance {
	i := instanceOf("AWS", machine)
	return &i
}

func TestReconcile(t *testing.T) {
	t.Run("makes an instance, says so on the Machine, and then writes nothing more", func(t *testing.T) {
		b := newBench(t, newWindowsMachine("a"), newWindowsMachine("linux", removeOSLabel))
		b.mustReconcile()
		if recorded := b.drainEvents(); len(recorded) != 1 || !strings.Contains(recorded[0], "WindowsInstanceCreated") {
			t.Errorf("said %q", recorded)
		}
		if result := b.mustReconcile(); b.writes != 0 || result.RequeueAfter != 0 || len(b.drainEvents()) != 0 {
			t.Errorf("%d writes, again after %s", b.writes, result.RequeueAfter)
		}
	})
	t.Run("does nothing while the cluster cannot be read", func(t *testing.T) {
		b := newBench(t, newWindowsMachine("a"), awsInstance(newWindowsMachine("gone")))
		b.clusterErr = errors.New("no Infrastructure")
		if b.mustReconcile(); b.writes != 0 {
			t.Errorf("%d writes", b.writes)
		}
	})
	t.Run("tells a Machine that lost its label from one that is gone", func(t *testing.T) {
		unlabeled := newWindowsMachine("unlabeled", removeOSLabel)
		b := newBench(t, unlabeled, awsInstance(newWindowsMachine("unlabeled")), awsInstance(newWindowsMachine("gone")))
		result := b.mustReconcile()
		if b.desiredState("unlabeled") != v1alpha1.DesiredStateUnmanaged || b.desiredState("gone") != v1alpha1.DesiredStateRemoved {
			t.Errorf("states are %s and %s", b.desiredState("unlabeled"), b.desiredState("gone"))
		}
		if result.RequeueAfter != unlabeledRereadInterval {
			t.Errorf("the Machine without label is looked at again after %s", result.RequeueAfter)
		}
		if err := b.api.Delete(t.Context(), unlabeled); err != nil {
			t.Fatal(err)
		}
		if result := b.mustReconcile(); b.desiredState("unlabeled") != v1alpha1.DesiredStateRemoved || result.RequeueAfter != 0 {
			t.Errorf("it is to be %s after its Machine has gone", b.desiredState("unlabeled"))
		}
	})
	t.Run("removes nothing when the API server does not say that the Machine is gone", func(t *testing.T) {
		notServed := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Group: "machine.openshift.io", Resource: "machines"}, "a", "404 page not found", 0, true)
		for _, err := range []error{errors.New("timeout"), notServed} {
			b := newBench(t, awsInstance(newWindowsMachine("a")))
			b.liveGet = err
			if _, got := b.reconcile(); got == nil || b.writes != 0 || b.desiredState("a") != v1alpha1.DesiredStateNode {
				t.Errorf("after %q: error %v, %d writes", err, got, b.writes)
			}
		}
	})
	t.Run("believes the API server and not its memory about another Machine of the name", func(t *testing.T) {
		b := newBench(t, newWindowsMachine("a", withUID("second")), awsInstance(newWindowsMachine("a")))
		if b.mustReconcile(); b.desiredState("a") != v1alpha1.DesiredStateRemoved {
			t.Errorf("it is to be %s", b.desiredState("a"))
		}
		if b.mustReconcile(); b.writes != 0 {
			t.Errorf("%d writes while the first is being removed", b.writes)
		}
		if err := b.api.Delete(t.Context(), awsInstance(newWindowsMachine("a"))); err != nil {
			t.Fatal(err)
		}
		if b.mustReconcile(); b.desiredState("a") != v1alpha1.DesiredStateNode {
			t.Errorf("the second is to be %s", b.desiredState("a"))
		}
	})
	t.Run("says once that a name is taken, and makes the instance when it is free", func(t *testing.T) {
		host := awsInstance(newWindowsMachine("a"))
		host.Spec.Source = v1alpha1.Source{ConfigMapKey: "10.0.0.1"}
		b := newBench(t, newWindowsMachine("a"), host)
		b.mustReconcile()
		if recorded := b.drainEvents(); len(recorded) != 1 || !strings.Contains(recorded[0], "InstanceNameConflict") {
			t.Errorf("said %q", recorded)
		}
		if b.mustReconcile(); len(b.drainEvents()) != 0 || b.writes != 0 {
			t.Error("it is said again")
		}
		if err := b.api.Delete(t.Context(), host); err != nil {
			t.Fatal(err)
		}
		if b.mustReconcile(); b.desiredState("a") != v1alpha1.DesiredStateNode {
			t.Errorf("it is to be %s", b.desiredState("a"))
		}
	})
	t.Run("says once that the API server refuses an instance, and does not try in vain", func(t *testing.T) {
		b := newBench(t, newWindowsMachine("a"))
		b.createErr = apierrors.NewInvalid(schema.GroupKind{Kind: "WindowsInstance"}, "a", nil)
		b.mustReconcile()
		b.mustReconcile()
		if recorded := b.drainEvents(); len(recorded) != 1 || !strings.Contains(recorded[0], "WindowsInstanceRejected") {
			t.Errorf("said %q", recorded)
		}
	})
	t.Run("leaves out labels and taints that no Node may have, and reports them once", func(t *testing.T) {
		bad := newWindowsMachine("a")
		bad.Spec.Labels = map[string]string{"team": "green", "a b": "c", "rack": "two words"}
		bad.Spec.Taints = []corev1.Taint{{Key: "good", Effect: corev1.TaintEffectNoSchedule}, {Key: "bad", Effect: "Sometimes"},
			{Key: "not good", Effect: corev1.TaintEffectNoSchedule}, {Key: "value", Value: "a b", Effect: corev1.TaintEffectNoExecute}}
		b := newBench(t, bad, awsInstance(newWindowsMachine("a")))
		b.mustReconcile()
		recorded := b.drainEvents()
		if b.mustReconcile(); len(recorded) != 1 || len(b.drainEvents()) != 0 || !strings.Contains(recorded[0], "NodeMetadataInvalid") {
			t.Errorf("said %q", recorded)
		}
		for _, fault := range []string{`label "a b=c"`, `label "rack=two words"`, `taint "bad:Sometimes"`, `taint "not good:NoSchedule"`, `taint "value=a b:NoExecute"`} {
			if !strings.Contains(recorded[0], fault) {
				t.Errorf("%s is not in %q", fault, recorded[0])
			}
		}
		created := &v1alpha1.WindowsInstance{}
		if err := b.api.Get(t.Context(), client.ObjectKeyFromObject(awsInstance(newWindowsMachine("a"))), created); err != nil {
			t.Fatal(err)
		}
		if node := created.Spec.Node; !maps.Equal(node.Labels, map[string]string{"team": "green"}) || len(node.Taints) != 1 || node.Taints[0].Key != "good" {
			t.Errorf("the Node is given %+v", node)
		}
	})
	t.Run("goes on with the others when one cannot be made", func(t *testing.T) {
		b := newBench(t, newWindowsMachine("a"), awsInstance(newWindowsMachine("gone")))
		b.createErr = errors.New("busy")
		if _, err := b.reconcile(); err == nil || !strings.Contains(err.Error(), "openshift-machine-api/a") {
			t.Errorf("the error is %v", err)
		}
		if b.desiredState("gone") != v1alpha1.DesiredStateRemoved {
			t.Errorf("the other is to be %s", b.desiredState("gone"))
		}
	})
	t.Run("says why an instance is left alone, and that it is taken up again", func(t *testing.T) {
		ignored := newWindowsMachine("a", withLabel(v1alpha1.LabelIgnore, "true"))
		b := newBench(t, ignored, awsInstance(newWindowsMachine("a")))
		b.mustReconcile()
		if recorded := b.drainEvents(); len(recorded) != 1 || !strings.Contains(recorded[0], v1alpha1.ReasonMachineIgnored) {
			t.Errorf("said %q", recorded)
		}
		delete(ignored.Labels, v1alpha1.LabelIgnore)
		if err := b.api.Update(t.Context(), ignored); err != nil {
			t.Fatal(err)
		}
		b.mustReconcile()
		if recorded := b.drainEvents(); len(recorded) != 1 || !strings.Contains(recorded[0], "MachineManaged") {
			t.Errorf("said %q", recorded)
		}
	})
}

// An instance that is created for an existing node, or with a changed host address, must not get an address of the
// pod network.
func TestReconcile_PodNetworkAddressNotUsed(t *testing.T) {
	b := newBench(t, newWindowsMachine("win", withAddresses(internalIP("10.132.4.2"), internalIP("10.0.0.7"))))
	b.podNetworks = []string{"10.132.0.0/14"}
	b.mustReconcile()
	created := &v1alpha1.WindowsInstance{}
	if err := b.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "win"}, created); err != nil {
		t.Fatal(err)
	}
	if created.Spec.Address != "10.0.0.7" {
		t.Errorf("the address is %s", created.Spec.Address)
	}
}
