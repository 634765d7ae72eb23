package orphan

import (
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	runtimeevent "sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
)

// trial is a Reconciler on an in-memory API server.
type trial struct {
	*testing.T
	*Reconciler
	clock    *clocktesting.FakeClock
	recorder *events.FakeRecorder
}

func newTrial(t *testing.T, objects ...client.Object) *trial {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	x := &trial{T: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)),
		recorder: events.NewFakeRecorder(10)}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	x.Reconciler = &Reconciler{Client: api, Namespace: "wmco", Events: x.recorder, Clock: x.clock}
	t.Cleanup(func() { x.forgetNode("win") }) // the metric is global to the process
	return x
}

// newNode returns a Node of the instance "entry" during its drain by the operator.
func newNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "win", UID: "1", Labels: map[string]string{corev1.LabelOSStable: "windows"},
			Annotations: map[string]string{v1alpha1.AnnotationInstance: "entry", v1alpha1.AnnotationCordoned: "x"}},
		Spec: corev1.NodeSpec{Unschedulable: true},
	}
}

func newInstance(name, nodeName string) *v1alpha1.WindowsInstance {
	i := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: name}}
	if nodeName != "" {
		i.Status.NodeRef = &v1alpha1.NodeReference{Name: nodeName}
	}
	return i
}

func (x *trial) reconcile() time.Duration {
	x.Helper()
	result, err := x.Reconcile(x.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "win"}})
	if err != nil {
		x.Fatal(err)
	}
	return result.RequeueAfter
}

// drainEvents returns the events since the last call.
func (x *trial) drainEvents() []string {
	var recorded []string
	for len(x.recorder.Events) > 0 {
		recorded = append(recorded, <-x.recorder.Events)
	}
	return recorded
}

func readOrphanGauge(t *testing.T) float64 {
	t.Helper()
	var written dto.Metric
	if err := metrics.NodesWithoutInstance.Write(&written); err != nil {
		t.Fatal(err)
	}
	return written.GetGauge().GetValue()
}

// ConfigMap windows-instances has no entry for a Machine.
func TestReconcile_ReportOfMachineNodeNamesLabel(t *testing.T) {
	x := newTrial(t, newNode())
	x.reconcile()
	x.clock.Step(GracePeriod)
	x.reconcile()
	if recorded := x.drainEvents(); len(recorded) != 1 || strings.Contains(recorded[0], "windows-instances") ||
		!strings.Contains(recorded[0], v1alpha1.LabelIgnore) || !strings.Contains(recorded[0], "oc adm uncordon win") {
		t.Errorf("the events are %q", recorded)
	}
}

func TestReconcile_NodeWithoutInstanceReported(t *testing.T) {
	listed := newNode()
	listed.Labels[v1alpha1.LabelBYOH] = "true"
	x := newTrial(t, listed)
	if after := x.reconcile(); after != GracePeriod || len(x.drainEvents()) > 0 || readOrphanGauge(t) != 0 {
		t.Fatalf("it is looked at again after %s, and is reported before", after)
	}
	x.clock.Step(GracePeriod)
	if after := x.reconcile(); after != 0 || readOrphanGauge(t) != 1 {
		t.Errorf("it is looked at again after %s, and %v are counted", after, readOrphanGauge(t))
	}
	recorded := x.drainEvents()
	if len(recorded) != 1 || !strings.HasPrefix(recorded[0], "Warning NodeWithoutInstance") ||
		!strings.Contains(recorded[0], "WindowsInstance entry in namespace wmco") ||
		!strings.Contains(recorded[0], "unschedulable") || !strings.Contains(recorded[0], "windows-instances") {
		t.Errorf("the events are %q", recorded)
	}
	x.clock.Step(time.Hour)
	if x.reconcile(); len(x.drainEvents()) > 0 || readOrphanGauge(t) != 1 {
		t.Errorf("it is reported again, %v are counted", readOrphanGauge(t))
	}
	t.Run("until an instance has it", func(t *testing.T) {
		if err := x.Client.Create(t.Context(), newInstance("entry", "win")); err != nil {
			t.Fatal(err)
		}
		if after := x.reconcile(); after != 0 || readOrphanGauge(t) != 0 {
			t.Errorf("it is looked at again after %s, and %v are counted", after, readOrphanGauge(t))
		}
	})
	t.Run("and again when that is deleted", func(t *testing.T) {
		if err := x.Client.Delete(t.Context(), newInstance("entry", "win")); err != nil {
			t.Fatal(err)
		}
		x.reconcile()
		x.clock.Step(GracePeriod)
		if x.reconcile(); len(x.drainEvents()) != 1 || readOrphanGauge(t) != 1 {
			t.Errorf("%v are counted", readOrphanGauge(t))
		}
	})
	t.Run("until the Node is gone", func(t *testing.T) {
		if err := x.Client.Delete(t.Context(), newNode()); err != nil {
			t.Fatal(err)
		}
		if x.reconcile(); readOrphanGauge(t) != 0 {
			t.Errorf("%v are counted", readOrphanGauge(t))
		}
	})
}

func TestReconcile_DetectsNodesWithoutInstance(t *testing.T) {
	without := func(change func(*corev1.Node)) *corev1.Node {
		n := newNode()
		n.Annotations = map[string]string{}
		change(n)
		return n
	}
	for name, c := range map[string]struct {
		node      *corev1.Node
		instances []client.Object
		want      bool
	}{
		"one whose instance was deleted":             {newNode(), nil, true},
		"not one that its instance has":              {newNode(), []client.Object{newInstance("entry", "win")}, false},
		"one whose instance has another":             {newNode(), []client.Object{newInstance("entry", "other")}, true},
		"not one that another claims":                {newNode(), []client.Object{newInstance("other", "win")}, false},
		"not one of an instance that was made again": {newNode(), []client.Object{newInstance("entry", "")}, false},
		"one that was to join, by its label": {without(func(n *corev1.Node) { n.Labels[v1alpha1.LabelOSID] = "Windows" }),
			nil, true},
		"one of a listed host, by its label": {without(func(n *corev1.Node) { n.Labels[v1alpha1.LabelBYOH] = "true" }),
			nil, true},
		"not a Windows node without a mark of ours": {without(func(*corev1.Node) {}), nil, false},
		"not a Linux node": {without(func(n *corev1.Node) {
			n.Labels = map[string]string{corev1.LabelOSStable: "linux", v1alpha1.LabelOSID: "rhel"}
		}), nil, false},
		"not the node of an older operator, which is taken over": {without(func(n *corev1.Node) {
			n.Labels[v1alpha1.LabelOSID] = "Windows"
			n.Annotations[v1alpha1.AnnotationVersion] = "10.19.0"
		}), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, append(c.instances, c.node)...)
			for range 3 {
				x.reconcile()
				x.clock.Step(GracePeriod)
			}
			if recorded := x.drainEvents(); len(recorded) > 0 != c.want || readOrphanGauge(t) > 0 != c.want {
				t.Errorf("the events are %q, %v are counted", recorded, readOrphanGauge(t))
			}
		})
	}
}

func TestWatches_BindingChangesTriggerReconcile(t *testing.T) {
	other := newNode()
	other.Annotations = map[string]string{v1alpha1.AnnotationInstance: "other"}
	busy := newNode()
	busy.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
	for name, c := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"a Node that gets another binding":      {newNode(), other, true},
		"not a heartbeat":                       {newNode(), busy, false},
		"an instance that gets its Node":        {newInstance("entry", ""), newInstance("entry", "win"), true},
		"not another status of the same Node's": {newInstance("entry", "win"), newInstance("entry", "win"), false},
	} {
		t.Run(name, func(t *testing.T) {
			e := runtimeevent.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}
			filter := queue.Changed(identifyingFields)
			if _, ok := c.before.(*v1alpha1.WindowsInstance); ok {
				filter = nodeRefChanged()
			}
			if got := filter.Update(e); got != c.want {
				t.Errorf("it is %t", got)
			}
		})
	}
	if got := instanceToNode(t.Context(), newInstance("entry", "win")); len(got) != 1 || got[0].Name != "win" {
		t.Errorf("the end of an instance wakes %v", got)
	}
}
