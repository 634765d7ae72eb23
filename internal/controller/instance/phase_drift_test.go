package instance

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// newInServiceTrial returns a trial with a listed host and an up-to-date node in service.
func newInServiceTrial(t *testing.T) *trial {
	t.Helper()
	x := newTrial(t)
	instance := listedInstance()
	instance.Status.Version = "1.2.3"
	x.asNode(instance, x.key.Hash())
	x.reconcile()
	x.popEvents()
	x.clock.Step(revertQuietPeriod)
	return x
}

// changeAsOtherWriter changes the Node as another writer, and reports whether the change enqueues the instance.
func (x *trial) changeAsOtherWriter(change func(*corev1.Node)) bool {
	x.t.Helper()
	before, after := x.getNode(), x.getNode()
	change(after)
	if err := x.Client.Update(x.t.Context(), after); err != nil {
		x.t.Fatal(err)
	}
	return nodeChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: x.getNode()})
}

func withoutTaint(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	}
}

func withoutLabel(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { delete(n.Labels, name) }
}

func withoutAnnotation(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { delete(n.Annotations, name) }
}

//
func TestNodeDrift_OwnedFieldsRevertedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		event  string
	}{
		"the label of the system": {withoutLabel(v1alpha1.LabelOSID), "label node.openshift.io/os_id"},
		"another value of it": {func(n *corev1.Node) { n.Labels[v1alpha1.LabelOSID] = "rhel" },
			"label node.openshift.io/os_id"},
		"the label of a listed host": {withoutLabel(v1alpha1.LabelBYOH), "label " + v1alpha1.LabelBYOH},
		"the label of a worker":      {withoutLabel(v1alpha1.LabelWorker), "label " + v1alpha1.LabelWorker},
		"the taint for Windows":      {withoutTaint(v1alpha1.TaintWindows), "taint os=Windows:NoSchedule"},
		"another value of the taint": {func(n *corev1.Node) { n.Spec.Taints[0].Value = "Linux" },
			"taint os=Windows:NoSchedule"},
		"the binding": {withoutAnnotation(v1alpha1.AnnotationInstance),
			"annotation " + v1alpha1.AnnotationInstance},
		"another binding": {func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationInstance] = "nobody" },
			"annotation " + v1alpha1.AnnotationInstance},
		"the host key": {withoutAnnotation(v1alpha1.AnnotationHostKey), "annotation " + v1alpha1.AnnotationHostKey},
		"another host key": {func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationHostKey] = "AAAA" },
			"annotation " + v1alpha1.AnnotationHostKey},
		"the type of the host key": {withoutAnnotation(v1alpha1.AnnotationHostKeyType),
			"annotation " + v1alpha1.AnnotationHostKeyType},
		"the operator's version": {withoutAnnotation(v1alpha1.AnnotationVersion),
			"annotation " + v1alpha1.AnnotationVersion},
		"the hash of the key": {withoutAnnotation(v1alpha1.AnnotationPubKeyHash),
			"annotation " + v1alpha1.AnnotationPubKeyHash},
	} {
		t.Run(name, func(t *testing.T) {
			x := newInServiceTrial(t)
			before := x.getNode()
			if !x.changeAsOtherWriter(c.change) {
				t.Error("the change does not wake the instance")
			}
			instance, _ := x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			after := x.getNode()
			if !maps.Equal(after.Labels, before.Labels) || !maps.Equal(after.Annotations, before.Annotations) ||
				!slices.Equal(formatTaints(after), formatTaints(before)) {
				t.Errorf("labels %v, annotations %v, taints %q", after.Labels, after.Annotations, formatTaints(after))
			}
			if events := x.popEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Normal NodeDriftReverted") ||
				!strings.Contains(events[0], c.event+".") {
				t.Errorf("the events are %q", events)
			}
			x.reconcile()
			if x.getNode().ResourceVersion != after.ResourceVersion || x.countDials() > 0 {
				t.Errorf("a pass with nothing to do writes, or there were %d connections", x.countDials())
			}
		})
	}
}

//
func TestNodeDrift_UserFieldsNotReverted(t *testing.T) {
	x := newInServiceTrial(t)
	x.changeAsOtherWriter(func(n *corev1.Node) {
		n.Labels["mine"], n.Annotations["example.com/mine"], n.Spec.Unschedulable = "x", "y", true
		n.Labels[corev1.LabelWindowsBuild] = "10.0.26100" // owned by the kubelet
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoExecute},
			corev1.Taint{Key: v1alpha1.TaintWindows, Value: "Windows", Effect: corev1.TaintEffectNoExecute})
	})
	before := x.getNode()
	if x.reconcile(); x.getNode().ResourceVersion != before.ResourceVersion {
		t.Errorf("the Node was written: %+v", x.getNode())
	}
	x.changeAsOtherWriter(withoutLabel(v1alpha1.LabelOSID))
	x.reconcile()
	after := x.getNode()
	if !maps.Equal(after.Labels, before.Labels) || !maps.Equal(after.Annotations, before.Annotations) ||
		!slices.Equal(formatTaints(after), formatTaints(before)) || !after.Spec.Unschedulable {
		t.Errorf("labels %v, annotations %v, taints %q, unschedulable %t", after.Labels, after.Annotations, formatTaints(after),
			after.Spec.Unschedulable)
	}
}

// A user's controller removes the taint again and again. The operator must not write without end.
func TestNodeDrift_RepeatedRevertsBackOff(t *testing.T) {
	x := newInServiceTrial(t)
	hasReverted := func() bool {
		x.changeAsOtherWriter(withoutTaint(v1alpha1.TaintWindows))
		x.reconcile()
		return len(x.getNode().Spec.Taints) > 0
	}
	for range revertWarnThreshold {
		if !hasReverted() {
			t.Fatal("the taint was not put back at once")
		}
	}
	wait := time.Duration(0)
	for i := range 12 {
		x.changeAsOtherWriter(withoutTaint(v1alpha1.TaintWindows))
		instance, after := x.reconcile()
		if len(x.getNode().Spec.Taints) > 0 {
			t.Fatalf("round %d: the taint was put back in spite of the pause", i)
		}
		if after < wait || after > maxRevertBackoff || after == 0 {
			t.Fatalf("round %d: the next look is after %s, the one before was after %s", i, after, wait)
		}
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		wait = after
		x.clock.Step(after)
		if x.reconcile(); len(x.getNode().Spec.Taints) == 0 {
			t.Fatalf("round %d: the taint was not put back after the pause", i)
		}
	}
	if wait != maxRevertBackoff {
		t.Errorf("the longest pause is %s", wait)
	}
	if told := x.popEvents(); len(told) != 12+revertWarnThreshold || !strings.HasPrefix(told[0], "Normal NodeDriftReverted") ||
		!strings.HasPrefix(told[revertWarnThreshold-1], "Warning NodeDriftReverted") || !strings.Contains(told[15], "keeps changing the fields") {
		t.Errorf("the events are %q", told)
	}
	x.clock.Step(revertQuietPeriod)
	if !hasReverted() {
		t.Error("after a calm time the taint was not put back at once")
	}
}

func TestNodeDrift_NotRevertedIfPaused(t *testing.T) {
	x := newInServiceTrial(t)
	x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.Paused = true })
	x.changeAsOtherWriter(withoutTaint(v1alpha1.TaintWindows))
	if x.reconcile(); len(x.getNode().Spec.Taints) > 0 {
		t.Error("the Node was written to")
	}
}

// The Node of another machine has registered under the name.
func TestNodeDrift_UnboundNodeNotWritten(t *testing.T) {
	x := newInServiceTrial(t)
	other := x.getNode()
	if err := x.Client.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	foreign := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine, UID: "another-uid"}}
	if err := x.Client.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	x.reconcile()
	if got := x.getNode(); len(got.Labels)+len(got.Annotations)+len(got.Spec.Taints) > 0 {
		t.Errorf("the Node was written to: %+v", got)
	}
}

// A webhook refuses the operator's writes to the Node. The certificates of the node must not depend on these
// writes.
func TestNodeDrift_RefusedWriteDoesNotBlockCertificates(t *testing.T) {
	x := newTrial(t)
	h, identity := x.onAzure(month)
	signed := x.enableSigning(month)
	x.untilDue()
	x.clock.Step(revertQuietPeriod)
	refuses, writes := true, 0
	x.Client = interceptor.NewClient(x.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, ok := object.(*corev1.Node); ok && refuses {
				writes++
				return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, object.GetName(), errors.New("denied by the policy of another team"))
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	x.changeAsOtherWriter(withoutTaint(v1alpha1.TaintWindows))
	instance, after := x.reconcile()
	condition := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonAPIRequestFailed)
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if !strings.Contains(condition.Message, "another team") || after > minRevertBackoff {
		t.Errorf("the next look is after %s; the condition says %q", after, condition.Message)
	}
	if len(signed) != 1 || h.currentCertificate(identity) == nil {
		t.Errorf("signed certificates are %d", len(signed))
	}
	if again, _ := x.reconcile(); writes != 1 || again.Status.Summary != instance.Status.Summary {
		t.Errorf("%d writes before the pause ends; the summary was %s and is %s", writes, instance.Status.Summary, again.Status.Summary)
	}
	refuses = false
	x.clock.Step(maxRevertBackoff)
	instance, _ = x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if len(x.getNode().Spec.Taints) == 0 {
		t.Error("the taint was not put back when the webhook allowed it")
	}
}
