package nodecondition

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// trial is a Reconciler on an in-memory API server with one Node and its instance.
type trial struct {
	*testing.T
	*Reconciler
	clock    *clocktesting.FakeClock
	recorder *events.FakeRecorder
	patches  int
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	x := &trial{T: t, clock: clocktesting.NewFakeClock(noon), recorder: events.NewFakeRecorder(10)}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win", UID: "1",
		Annotations: map[string]string{v1alpha1.AnnotationInstance: "instance"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	instance := &v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: "instance"},
		Spec:       v1alpha1.WindowsInstanceSpec{DesiredState: v1alpha1.DesiredStateNode},
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(node,
		instance).WithStatusSubresource(node).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			x.patches++
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
	}).Build()
	x.Reconciler = &Reconciler{Client: api, Namespace: "wmco", Events: x.recorder, Clock: x.clock}
	t.Cleanup(func() { x.forgetNode("win") }) // the metric is global to the process
	return x
}

func (x *trial) getNode() *corev1.Node {
	x.Helper()
	node := &corev1.Node{}
	if err := x.Client.Get(x.Context(), client.ObjectKey{Name: "win"}, node); err != nil {
		x.Fatal(err)
	}
	return node
}

// write writes the condition as an agent does, and returns the Node before and after.
func (x *trial) write(status corev1.ConditionStatus, reason, message string, heartbeat time.Time) (before,
	after *corev1.Node) {
	x.Helper()
	before = x.getNode()
	after = before.DeepCopy()
	condition := corev1.NodeCondition{
		Type: nodespec.ConditionConfiguration, Status: status, Reason: reason, Message: message,
		LastHeartbeatTime: metav1.NewTime(heartbeat),
	}
	if present := Of(after); present != nil {
		*present = condition
	} else {
		after.Status.Conditions = append(after.Status.Conditions, condition)
	}
	if err := x.Client.Status().Update(x.Context(), after); err != nil {
		x.Fatal(err)
	}
	x.emitConditionEvent(x.Context(), before, after)
	return before, x.getNode()
}

func (x *trial) reconcile() time.Duration {
	x.Helper()
	result, err := x.Reconcile(x.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "win"}})
	if err != nil {
		x.Fatal(err)
	}
	return result.RequeueAfter
}

func TestReconcile_SilentAgentSetsConditionUnknown(t *testing.T) {
	x := newTrial(t)
	x.write(corev1.ConditionTrue, nodespec.ConfigurationInSync, "", noon.AddDate(1, 0, 0)) // the host's clock is ahead
	if after := x.reconcile(); after != HeartbeatTimeout {
		t.Fatalf("the next look is after %s", after)
	}
	x.clock.Step(5 * time.Minute)
	x.write(corev1.ConditionTrue, nodespec.ConfigurationInSync, "", noon.AddDate(1, 0, 1))
	if after := x.reconcile(); after != HeartbeatTimeout {
		t.Errorf("after a sign of life the next look is after %s", after)
	}
	x.clock.Step(HeartbeatTimeout - time.Minute)
	if after := x.reconcile(); after != time.Minute || x.patches > 0 {
		t.Fatalf("the next look is after %s; it was written %d times", after, x.patches)
	}
	x.clock.Step(time.Minute)
	if after := x.reconcile(); after != 0 {
		t.Errorf("the next look is after %s, and a heartbeat would be an event", after)
	}
	got := Of(x.getNode())
	if got.Status != corev1.ConditionUnknown || got.Reason != nodespec.ConfigurationAgentSilent ||
		!strings.Contains(got.Message, "for 15 minutes") ||
		!strings.Contains(got.Message, nodespec.ServiceAgent) || !got.LastTransitionTime.Time.Equal(x.clock.Now()) ||
		got.LastHeartbeatTime.Year() != 2027 {
		t.Errorf("%+v", got)
	}
	if len(x.getNode().Status.Conditions) != 2 || x.getNode().Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("the kubelet's conditions are %+v", x.getNode().Status.Conditions)
	}
	t.Run("once", func(*testing.T) {
		x.clock.Step(time.Hour)
		if after := x.reconcile(); after != 0 || x.patches != 1 {
			t.Errorf("the next look is after %s; it was written %d times", after, x.patches)
		}
	})
	t.Run("until it writes again", func(*testing.T) {
		x.write(corev1.ConditionTrue, nodespec.ConfigurationInSync, "", noon.AddDate(1, 0, 2))
		if after := x.reconcile(); after != HeartbeatTimeout || x.patches != 1 {
			t.Errorf("the next look is after %s; it was written %d times", after, x.patches)
		}
	})
}

func TestReconcile_UnwrittenConditionBecomesUnknown(t *testing.T) {
	x := newTrial(t)
	if after := x.reconcile(); after != HeartbeatTimeout {
		t.Fatalf("the next look is after %s", after)
	}
	x.clock.Step(HeartbeatTimeout)
	x.reconcile()
	if got := Of(x.getNode()); got == nil || got.Status != corev1.ConditionUnknown {
		t.Errorf("%+v", got)
	}
}

func TestReconcile_ForeignNodeNotWritten(t *testing.T) {
	x := newTrial(t)
	node := x.getNode()
	node.Annotations = nil
	if err := x.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if after := x.reconcile(); after != 0 || x.patches > 0 || len(x.heartbeatsByNode) > 0 {
			t.Errorf("it is looked at again after %s, and was written %d times", after, x.patches)
		}
		x.clock.Step(time.Hour)
	}
}

// A legacy node waits for a disruption slot, possibly for days. The agent of the legacy operator writes no condition.
func TestReconcile_LegacyNodeNotWrittenUntilUpgraded(t *testing.T) {
	x := newTrial(t)
	legacy := x.getNode()
	legacy.Annotations[v1alpha1.AnnotationTakenOverFrom] = "10.19.0"
	if err := x.Client.Update(t.Context(), legacy); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if after := x.reconcile(); after != 0 || x.patches > 0 || len(x.heartbeatsByNode) > 0 {
			t.Errorf("the next check is after %s; %d writes; %d nodes are counted", after, x.patches, len(x.heartbeatsByNode))
		}
		x.clock.Step(time.Hour)
	}
	upToDate := x.getNode()
	delete(upToDate.Annotations, v1alpha1.AnnotationTakenOverFrom)
	if !queue.Changed(watchedFields).Update(event.UpdateEvent{ObjectOld: x.getNode(), ObjectNew: upToDate}) {
		t.Fatal("the end of its upgrade is no event")
	}
	if err := x.Client.Update(t.Context(), upToDate); err != nil {
		t.Fatal(err)
	}
	if after := x.reconcile(); after != HeartbeatTimeout || len(x.heartbeatsByNode) != 1 {
		t.Errorf("after its upgrade, the next check is after %s; %d nodes are counted", after, len(x.heartbeatsByNode))
	}
}

// A concurrent write of the agent must win, because it is newer.
func TestSetUnknown_ConcurrentAgentWriteWins(t *testing.T) {
	x := newTrial(t)
	stale := x.getNode()
	x.write(corev1.ConditionTrue, nodespec.ConfigurationInSync, "", noon)
	if err := x.setUnknown(t.Context(), stale, nil, noon); !apierrors.IsConflict(err) {
		t.Errorf("error %v", err)
	}
	if got := Of(x.getNode()); got.Status != corev1.ConditionTrue {
		t.Errorf("%+v", got)
	}
}

// The kubelet writes to the Node at the same time. This write causes no event for the condition, so the silence
// must be checked again.
func TestReconcile_ConflictIsRetried(t *testing.T) {
	x := newTrial(t)
	inner, ok := x.Client.(client.WithWatch)
	if !ok {
		t.Fatal("the API server in memory has no watch")
	}
	x.reconcile()
	x.clock.Step(HeartbeatTimeout)
	x.Client = interceptor.NewClient(inner, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch,
			...client.SubResourcePatchOption) error {
			return apierrors.NewConflict(corev1.Resource("nodes"), "win", nil)
		},
	})
	if after := x.reconcile(); after != conflictDelay {
		t.Errorf("the next look is after %s", after)
	}
	x.Client = inner
	x.reconcile()
	if got := Of(x.getNode()); got == nil || got.Status != corev1.ConditionUnknown {
		t.Errorf("%+v", got)
	}
}

func TestConditionEvent_EmittedForNewState(t *testing.T) {
	const repaired = "The agent put back: StartService kubelet (service kubelet does not run)."
	for name, c := range map[string]struct {
		before, after [3]string // status, reason, message
		want          string
	}{
		"a host that matches":    {[3]string{}, [3]string{"True", "InSync", "a"}, ""},
		"another message of one": {[3]string{"True", "InSync", "a"}, [3]string{"True", "InSync", "b"}, ""},
		"a repair": {[3]string{"True", "InSync", "a"}, [3]string{"False", "Repaired", repaired},
			"Normal DriftRepaired The host of Node win differed from its NodeSpec. " + repaired},
		"another repair after it": {[3]string{"False", "Repaired", "a"}, [3]string{"False", "Repaired", repaired},
			"Normal DriftRepaired The host of Node win differed from its NodeSpec. " + repaired},
		"what cannot be repaired": {[3]string{"True", "InSync", "a"}, [3]string{"False", "Drifted", "not repaired: b"},
			"Warning DriftNotRepaired The host of Node win differs from its NodeSpec: not repaired: b"},
		"the same once more": {[3]string{"False", "Drifted", "b"}, [3]string{"False", "Drifted", "b"}, ""},
		"the same after a silence": {[3]string{"Unknown", "AgentSilent", "b"}, [3]string{"False", "Drifted", "b"},
			"Warning DriftNotRepaired The host of Node win differs from its NodeSpec: b"},
		"the end of it":               {[3]string{"False", "Drifted", "b"}, [3]string{"True", "InSync", "a"}, ""},
		"an agent that became silent": {[3]string{"True", "InSync", "a"}, [3]string{"Unknown", "AgentSilent", "b"}, ""},
		"a status that there is not":  {[3]string{"True", "InSync", "a"}, [3]string{"Pwned", "Drifted", "b"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			if c.before[0] != "" {
				x.write(corev1.ConditionStatus(c.before[0]), c.before[1], c.before[2], noon)
				for len(x.recorder.Events) > 0 {
					<-x.recorder.Events
				}
			}
			x.write(corev1.ConditionStatus(c.after[0]), c.after[1], c.after[2], noon)
			got := ""
			if len(x.recorder.Events) > 0 {
				got = <-x.recorder.Events
			}
			if got != c.want || len(x.recorder.Events) > 0 {
				t.Errorf("%q and %d more, want %q", got, len(x.recorder.Events), c.want)
			}
		})
	}
	t.Run("but not while the host is given back", func(t *testing.T) {
		x := newTrial(t)
		instance := &v1alpha1.WindowsInstance{}
		if err := x.Client.Get(t.Context(), client.ObjectKey{Namespace: "wmco", Name: "instance"}, instance); err != nil {
			t.Fatal(err)
		}
		instance.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		if err := x.Client.Update(t.Context(), instance); err != nil {
			t.Fatal(err)
		}
		if x.write(corev1.ConditionFalse, nodespec.ConfigurationDrifted, "all is gone", noon); len(x.recorder.Events) > 0 {
			t.Errorf("%s", <-x.recorder.Events)
		}
	})
}
