package instance

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const sharer = "sharer"

// sharedTrial returns a trial with a host that is the node of a listed instance, and is also listed under another
// address. The second instance was refused as a duplicate.
func sharedTrial(t *testing.T) *trial {
	t.Helper()
	x := newTrial(t)
	instance := machineInstance()
	instance.Spec.Source = v1alpha1.Source{ConfigMapKey: instance.Spec.Address}
	x.asNode(instance, x.key.Hash())
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) { status.Host.MachineID = "the-machine" })
	second := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: sharer, UID: "sharer-uid",
		Generation: 1}}
	second.Spec = v1alpha1.WindowsInstanceSpec{
		Address: "10.0.0.99", Username: "Administrator", DesiredState: v1alpha1.DesiredStateNode,
		Source: v1alpha1.Source{ConfigMapKey: "10.0.0.99"},
	}
	if err := x.Client.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	status := x.getInstance().Status
	second.Status = v1alpha1.WindowsInstanceStatus{HostKey: status.HostKey, Host: status.Host}
	if err := x.Client.Status().Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	return x
}

// sharingInstance returns the second instance; nil if it no longer exists.
func (x *trial) sharingInstance() *v1alpha1.WindowsInstance {
	x.t.Helper()
	instance := &v1alpha1.WindowsInstance{}
	if err := x.Client.Get(x.t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: sharer}, instance); err != nil {
		return nil
	}
	return instance
}

// reconcileSharer reconciles the second instance once, and returns the instance if it still exists.
func (x *trial) reconcileSharer() *v1alpha1.WindowsInstance {
	x.t.Helper()
	key := client.ObjectKey{Namespace: operatorNamespace, Name: sharer}
	x.reconcileAll(key)
	return x.sharingInstance()
}

// The source marks one instance after the other, and each is reconciled as soon as marked.
func TestRemoval_HostListedTwiceLeavesNothing(t *testing.T) {
	t.Run("when the one with the node is marked first", func(t *testing.T) {
		x := sharedTrial(t)
		x.changeSpec(x.getInstance(), setRemoved)
		waits, _ := x.reconcile()
		if waits == nil || x.getNode() == nil || x.countDials() > 0 {
			t.Fatalf("left is %v, Node %v, after %d connections", waits, x.getNode(), x.countDials())
		}
		ready := expectCondition(t, waits, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRemoving)
		if !strings.Contains(ready.Message, "WindowsInstance sharer (10.0.0.99)") {
			t.Errorf("told is %q", ready.Message)
		}
		x.changeSpec(x.sharingInstance(), setRemoved)
		if x.reconcileSharer() == nil || x.countDials() > 0 {
			t.Errorf("the host was contacted %d times before its node was drained", x.countDials())
		}
		x.checkAllRemoved()
	})
	t.Run("when the duplicate is marked first and worked on last", func(t *testing.T) {
		x := sharedTrial(t)
		x.changeSpec(x.sharingInstance(), setRemoved)
		x.changeSpec(x.getInstance(), setRemoved)
		x.checkAllRemoved()
	})
	t.Run("when the duplicate is marked first and worked on at once", func(t *testing.T) {
		x := sharedTrial(t)
		x.changeSpec(x.sharingInstance(), setRemoved)
		if left := x.reconcileSharer(); left != nil || x.countDials() > 0 || x.getNode() == nil {
			t.Errorf("left is %v, Node %v, after %d connections", left, x.getNode(), x.countDials())
		}
		x.changeSpec(x.getInstance(), setRemoved)
		x.checkAllRemoved()
	})
}

// checkAllRemoved checks that both instances and the Node are deleted.
func (x *trial) checkAllRemoved() {
	x.t.Helper()
	if left, _ := x.reconcile(); left != nil || x.getNode() != nil || x.countDials() == 0 {
		x.t.Errorf("left is %v, Node %v, after %d connections", left, x.getNode(), x.countDials())
	}
	if left := x.reconcileSharer(); left != nil {
		x.t.Errorf("the second is left: %s", left.Status.NextAction)
	}
}

//
func TestRemoval_NodeReboundBeforeInstanceIsDeleted(t *testing.T) {
	x := sharedTrial(t)
	x.changeSpec(x.getInstance(), setRemoved)
	x.reconcile()
	successor := x.sharingInstance()
	successor.Status.NodeRef = &v1alpha1.NodeReference{Name: machine, Confirmed: true}
	if err := x.Client.Status().Update(t.Context(), successor); err != nil {
		t.Fatal(err)
	}
	if left, _ := x.reconcile(); left == nil {
		t.Fatal("the instance goes before the other one is bound to its Node")
	}
	successor.Status.NodeRef.UID = "node-uid"
	if err := x.Client.Status().Update(t.Context(), successor); err != nil {
		t.Fatal(err)
	}
	if left, _ := x.reconcile(); left != nil || x.getNode() == nil || x.getNode().Spec.Unschedulable || x.countDials() > 0 {
		t.Errorf("left is %v, Node %v, after %d connections", left, x.getNode(), x.countDials())
	}
}

// A host was renamed and is listed under another address. Under the new name, the host is another Node.
func TestRemoval_NodeOfRenamedHostIsDeleted(t *testing.T) {
	x := sharedTrial(t)
	x.changeSpec(x.getInstance(), setRemoved)
	successor := x.sharingInstance()
	successor.Status.NodeRef = &v1alpha1.NodeReference{Name: "renamed", UID: "other-uid", Confirmed: true}
	if err := x.Client.Status().Update(t.Context(), successor); err != nil {
		t.Fatal(err)
	}
	if left, _ := x.reconcile(); left != nil || x.getNode() != nil || x.countDials() > 0 {
		t.Errorf("left is %v, Node %v, after %d connections", left, x.getNode(), x.countDials())
	}
}

func TestSharedHostChanged_EnqueuesInstancesOfSameHost(t *testing.T) {
	x := sharedTrial(t)
	before := x.getInstance()
	woken := func(after *v1alpha1.WindowsInstance) bool {
		if !sharedHostChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			return false
		}
		requests := x.instancesOnSameHost(t.Context(), after)
		return len(requests) == 1 && requests[0].Name == sharer
	}
	leaves, rebound, renamed := before.DeepCopy(), before.DeepCopy(), before.DeepCopy()
	setRemoved(leaves)
	rebound.Status.NodeRef.UID = "another"
	renamed.Status.Summary = "Another"
	if !woken(leaves) || woken(rebound) || woken(renamed) {
		t.Error("a duplicate is to be woken when the other instance leaves, and else not")
	}
	if !sharedHostChanged().Delete(event.DeleteEvent{Object: leaves}) {
		t.Error("an instance that is gone wakes nobody")
	}
	x.changeSpec(x.sharingInstance(), setRemoved)
	if !woken(rebound) {
		t.Error("an instance that is being removed is not woken when the other one is bound to the Node")
	}
}
