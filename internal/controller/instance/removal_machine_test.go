package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func setRemoved(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateRemoved }

// joinedInProgress returns an instance with a kubelet that may have its certificate, and an unknown Node.
func joinedInProgress() *v1alpha1.WindowsInstance {
	instance := machineInstance()
	instance.Status.HostKey = &v1alpha1.HostKey{Type: "ssh-ed25519", Key: "AAAA", Fingerprint: "SHA256:x"}
	instance.Status.NodeRef = &v1alpha1.NodeReference{Name: machine, Confirmed: true}
	setRemoved(instance)
	return instance
}

// registeredNode returns the Node as registered by a kubelet.
func registeredNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: machine, UID: "late-uid",
			Labels: map[string]string{corev1.LabelOSStable: "windows", v1alpha1.LabelOSID: "Windows"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{windowsTaint, {Key: v1alpha1.TaintNotReady,
			Effect: corev1.TaintEffectNoSchedule}}},
	}
}

func TestRemoval_DeletedMachineLeavesNothing(t *testing.T) {
	t.Run("of a node in service: no contact, no drain, no Node, no instance", func(t *testing.T) {
		x := newTrial(t)
		instance := machineInstance()
		x.asNode(instance, x.key.Hash())
		instance, _ = x.reconcile()
		x.popEvents()
		x.changeSpec(instance, setRemoved)
		if left, after := x.reconcile(); left != nil || after != 0 {
			t.Errorf("the instance is there still, next look in %s", after)
		}
		if x.getNode() != nil || x.countDials() > 0 {
			t.Errorf("Node %v, %d connections", x.getNode(), x.countDials())
		}
		if len(x.clientset.Actions()) == 0 {
			t.Error("no certificate requests were looked for")
		}
		for _, action := range x.clientset.Actions() {
			if action.GetResource().Resource == "pods" {
				t.Errorf("it drains: %v", action)
			}
		}
	})
	t.Run("of a host that was never reached", func(t *testing.T) {
		instance := machineInstance()
		setRemoved(instance)
		x := newTrial(t, instance)
		x.host.switchOff(true)
		if left, _ := x.reconcile(); left != nil || x.countDials() > 0 {
			t.Errorf("left is %v, with %d connections", left, x.countDials())
		}
	})
	t.Run("without the key, and though it is paused: there is nothing to be touched any more", func(t *testing.T) {
		instance := machineInstance()
		setRemoved(instance)
		instance.Spec.Paused = true
		x := newTrial(t, instance)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "cloud-private-key"}}
		if err := x.Client.Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if left, _ := x.reconcile(); left != nil {
			t.Errorf("it waits for %s", left.Status.Summary)
		}
	})
	t.Run("but a Node of that name which is another's stays", func(t *testing.T) {
		x := newTrial(t)
		instance := machineInstance()
		x.asNode(instance, x.key.Hash())
		node := x.getNode()
		node.Annotations[v1alpha1.AnnotationInstance] = "another"
		if err := x.Client.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		x.createAnother(&v1alpha1.NodeReference{Name: node.Name, UID: string(node.UID), Confirmed: true})
		instance, _ = x.reconcile()
		x.changeSpec(instance, setRemoved)
		if left, _ := x.reconcile(); left != nil || x.getNode() == nil {
			t.Errorf("left is %v, Node %v", left, x.getNode())
		}
	})
}

func TestRemoval_LateNodeOfDeletedMachineDeleted(t *testing.T) {
	t.Run("is waited for, once its name was confirmed and it may have its certificate", func(t *testing.T) {
		x := newTrial(t, joinedInProgress())
		instance, after := x.reconcile()
		if instance == nil || after != lateNodeTimeout {
			t.Fatalf("instance %v, next look in %s", instance, after)
		}
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRemoving)
		if err := x.Client.Create(t.Context(), registeredNode()); err != nil {
			t.Fatal(err)
		}
		x.clock.Step(time.Second)
		if _, after := x.reconcile(); x.getNode() != nil || after != lateNodeTimeout-time.Second {
			t.Errorf("Node %v, next look in %s", x.getNode(), after)
		}
		x.clock.Step(after)
		if left, _ := x.reconcile(); left != nil || x.countDials() > 0 {
			t.Errorf("left is %v, with %d connections", left, x.countDials())
		}
	})
	t.Run("in the last moment goes with the instance", func(t *testing.T) {
		x := newTrial(t, joinedInProgress())
		x.reconcile()
		if err := x.Client.Create(t.Context(), registeredNode()); err != nil {
			t.Fatal(err)
		}
		x.clock.Step(lateNodeTimeout)
		if left, _ := x.reconcile(); left != nil || x.getNode() != nil {
			t.Errorf("left is %v, Node %v", left, x.getNode())
		}
	})
	t.Run("cannot have done so before its name was confirmed", func(t *testing.T) {
		instance := joinedInProgress()
		instance.Status.NodeRef.Confirmed = false
		x := newTrial(t, instance)
		if left, after := x.reconcile(); left != nil {
			t.Errorf("it is waited for %s", after)
		}
	})
}
