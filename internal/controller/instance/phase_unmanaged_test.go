package instance

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func encodeKey(key ssh.PublicKey) string { return base64.StdEncoding.EncodeToString(key.Marshal()) }

// setUnmanaged sets the instance to unmanaged, as a source does.
func setUnmanaged(reason string) func(*v1alpha1.WindowsInstance) {
	return func(i *v1alpha1.WindowsInstance) {
		i.Spec.DesiredState, i.Spec.DesiredStateReason = v1alpha1.DesiredStateUnmanaged, reason
	}
}

//
func TestUnmanaged_HostNotChanged(t *testing.T) {
	for reason, message := range map[string]string{
		v1alpha1.ReasonMachineDeleting: "deleted with the Machine", v1alpha1.ReasonMachineFailed: "delete it",
		v1alpha1.ReasonMachineIgnored: v1alpha1.LabelIgnore,
	} {
		t.Run(reason, func(t *testing.T) {
			x := newTrial(t)
			instance := machineInstance()
			x.asNode(instance, x.key.Hash())
			node := x.getNode()
			before, _ := x.reconcile()
			x.changeSpec(before.DeepCopy(), setUnmanaged(reason))
			instance, after := x.reconcile()
			ready := expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionUnknown, reason)
			if instance.Status.Summary != reason || !strings.Contains(instance.Status.NextAction, message) ||
				!strings.Contains(ready.Message, machine) {
				t.Errorf("summary %q, message %q, next %q", instance.Status.Summary, ready.Message, instance.Status.NextAction)
			}
			for _, condition := range scope.Conditions {
				if condition != v1alpha1.ConditionReady &&
					!reflect.DeepEqual(meta.FindStatusCondition(before.Status.Conditions, condition).Status,
						meta.FindStatusCondition(instance.Status.Conditions, condition).Status) {
					t.Errorf("condition %s has changed", condition)
				}
			}
			if x.countDials() > 0 || x.getNode().ResourceVersion != node.ResourceVersion || after != 0 {
				t.Errorf("%d connections, Node %s after %s, next look in %s", x.countDials(), x.getNode().ResourceVersion,
					node.ResourceVersion, after)
			}
			if again, _ := x.reconcile(); again.ResourceVersion != instance.ResourceVersion {
				t.Error("the next pass writes the same again")
			}
			x.changeSpec(instance, func(i *v1alpha1.WindowsInstance) {
				i.Spec.DesiredState, i.Spec.DesiredStateReason = v1alpha1.DesiredStateNode, ""
			})
			instance, _ = x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			if x.countDials() > 0 || instance.Status.Summary != v1alpha1.ReasonReady {
				t.Errorf("back again, with %d connections: %s", x.countDials(), instance.Status.Summary)
			}
		})
	}
}

func TestUnmanaged_UnreachedHostNotContacted(t *testing.T) {
	instance := machineInstance()
	setUnmanaged(v1alpha1.ReasonMachineFailed)(instance)
	x := newTrial(t, instance)
	instance, _ = x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonMachineFailed)
	expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionUnknown, v1alpha1.ReasonDependencyNotReady)
	if x.countDials() > 0 {
		t.Error("the host was contacted")
	}
}

// changingCluster is a ClusterSource of an unsupported cluster that changes the instance during each read.
type changingCluster struct {
	*trial
	meanwhile func()
}

func (o changingCluster) Current() (nodespec.Cluster, error) {
	o.meanwhile()
	return o.trial.Current()
}

func TestReconcile_RecreatedInstanceHasNoFormerStatus(t *testing.T) {
	x := newTrial(t, machineInstance())
	x.facts.Version = "4.5.0"
	x.Cluster = changingCluster{x, func() {
		if err := x.Client.Delete(t.Context(), machineInstance()); err != nil {
			t.Fatal(err)
		}
		again := machineInstance()
		again.UID, again.Spec.Source.Machine.UID = "another-instance-uid", "another-machine-uid"
		if err := x.Client.Create(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}}
	if _, err := x.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(machineInstance())}); err != nil {
		t.Fatal(err)
	}
	instance := x.getInstance()
	if instance.UID != "another-instance-uid" || len(instance.Status.Conditions) > 0 ||
		instance.Status.Summary != "" || len(x.popEvents()) > 0 {
		t.Errorf("the status of instance %s is %+v", instance.UID, instance.Status)
	}
}

func TestInstanceChanged_IgnoresOwnStatus(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.WindowsInstance)
		want   bool
	}{
		"another spec":  {func(i *v1alpha1.WindowsInstance) { i.Generation++ }, true},
		"an annotation": {func(i *v1alpha1.WindowsInstance) { i.Annotations = map[string]string{"a": "b"} }, true},
		"one that was made again, seen as a change": {func(i *v1alpha1.WindowsInstance) { i.UID = "another" }, true},
		"not the operator's own status": {func(i *v1alpha1.WindowsInstance) {
			i.Status.Summary, i.ResourceVersion = "Ready", "2"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			after := machineInstance()
			c.change(after)
			if got := instanceChanged().Update(event.UpdateEvent{ObjectOld: machineInstance(), ObjectNew: after}); got != c.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}
