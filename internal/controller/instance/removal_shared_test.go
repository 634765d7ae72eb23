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
	instance := ofMachine()
	instance.Spec.Source = v1alpha1.Source{ConfigMapKey: instance.Spec.Address}
	x.asNode(instance, x.key.Hash())
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) { status.Host.MachineID = "the-machine" })
	second := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ourNamespace, Name: sharer, UID: "sharer-uid",
		Generation: 1}}
	second.Spec = v1alpha1.WindowsInstanceSpec{
		Address: "10.0.0.99", Username: "Administrator", DesiredState: v1alpha1.DesiredStateNode,
		Source: v1alpha1.Source{ConfigMapKey: "10.0.0.99"},
	}
	if err := x.Client.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	status := x.instance().Status
	second.Status = v1alpha1.WindowsInstanceStatus{HostKey: status.HostKey, Host: status.Host}
	if err := x.Client.Status().Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	return x
}

// sharer returns the second instance; nil if it no longer exists.
func (x *trial) sharer() *v1alpha1.WindowsInstance {
	x.t.Helper()
	instance := &v1alpha1.WindowsInstance{}
	if err := x.Client.Get(x.t.Context(), client.ObjectKey{Namespace: ourNamespace, Name: sharer}, instance); err != nil {
		return nil
	}
	return instance
}

// reconcileSharer reconciles the second instance once, and returns the instance if it still exists.
func (x *trial) reconcileSharer() *v1alpha1.WindowsInstance {
	x.t.Helper()
	key := client.ObjectKey{Namespace: ourNamespace, Name: sharer}
	x.reconcileAll(key)
	return x.sharer()
}

// The source marks one instance after the other, and each is reconciled as soon as marked.
func TestAHostThatIsListedTwiceAndRemovedWholeLeavesNothingBehind(t *testing.T) {
	t.Run("when the one with the node is marked first", func(t *testing.T) {
		x := sharedTrial(t)
		x.change(x.instance(), remove)
		waits, _ := x.reconcile()
		if waits == nil || x.node() == nil || x.dials() > 0 {
			t.Fatalf("left is %v, Node %v, after %d connections", waits, x.node(), x.dials())
		}
		ready := expect(t, waits, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRemoving)
		if !strings.Contains(ready.Message, "WindowsInstance sharer (10.0.0.99)") {
			t.Errorf("told is %q", ready.Message)
		}
		x.change(x.sharer(), remove)
		if x.reconcileSharer() == nil || x.dials() > 0 {
			t.Errorf("the host was contacted %d times before its node was drained", x.dials())
		}
		x.goesWhole()
	})
	t.Run("when the duplicate is marked first and worked on last", func(t *testing.T) {
		x := sharedTrial(t)
		x.change(x.sharer(), remove)
		x.change(x.instance(), remove)
		x.goesWhole()
	})
	t.Run("when the duplicate is marked first and worked on at once", func(t *testing.T) {
		x := sharedTrial(t)
		x.change(x.sharer(), remove)
		if left := x.reconcileSharer(); left != nil || x.dials() > 0 || x.node() == nil {
			t.Errorf("left is %v, Node %v, after %d connections", left, x.node(), x.dials())
		}
		x.change(x.instance(), remove)
		x.goesWhole()
	})
}

// goesWhole checks that both instances and the Node are deleted.
func (x *trial) goesWhole() {
	x.t.Helper()
	if left, _ := x.reconcile(); left != nil || x.node() != nil || x.dials() == 0 {
		x.t.Errorf("left is %v, Node %v, after %d connections", left, x.node(), x.dials())
	}
	if left := x.reconcileSharer(); left != nil {
		x.t.Errorf("the second is left: %s", left.Status.NextAction)
	}
}

//
func TestANodeIsHandedOverBeforeItsInstanceGoes(t *testing.T) {
	x := sharedTrial(t)
	x.change(x.instance(), remove)
	x.reconcile()
	heir := x.sharer()
	heir.Status.NodeRef = &v1alpha1.NodeReference{Name: machine, Confirmed: true}
	if err := x.Client.Status().Update(t.Context(), heir); err != nil {
		t.Fatal(err)
	}
	if left, _ := x.reconcile(); left == nil {
		t.Fatal("the instance goes before the other one is bound to its Node")
	}
	heir.Status.NodeRef.UID = "node-uid"
	if err := x.Client.Status().Update(t.Context(), heir); err != nil {
		t.Fatal(err)
	}
	if left, _ := x.reconcile(); left != nil || x.node() == nil || x.node().Spec.Unschedulable || x.dials() > 0 {
		t.Errorf("left is %v, Node %v, after %d connections", left, x.node(), x.dials())
	}
}

// A host was renamed and is listed under another address. Under the new name, the host is another Node.
func TestTheNodeOfARenamedHostGoesWithItsInstance(t *testing.T) {
	x := sharedTrial(t)
	x.change(x.instance(), remove)
	heir := x.sharer()
	heir.Status.NodeRef = &v1alpha1.NodeReference{Name: "renamed", UID: "other-uid", Confirmed: true}
	if err := x.Client.Status().Update(t.Context(), heir); err != nil {
		t.Fatal(err)
	}
	if left, _ := x.reconcile(); left != nil || x.node() != nil || x.dials() > 0 {
		t.Errorf("left is %v, Node %v, after %d connections", left, x.node(), x.dials())
	}
}

func TestWhoIsWokenWhenAHostIsPassedOn(t *testing.T) {
	x := sharedTrial(t)
	before := x.instance()
	woken := func(after *v1alpha1.WindowsInstance) bool {
		if !hostPassedOn().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			return false
		}
		requests := x.sharersOf(t.Context(), after)
		return len(requests) == 1 && requests[0].Name == sharer
	}
	leaves, rebound, renamed := before.DeepCopy(), before.DeepCopy(), before.DeepCopy()
	remove(leaves)
	rebound.Status.NodeRef.UID = "another"
	renamed.Status.Summary = "Another"
	if !woken(leaves) || woken(rebound) || woken(renamed) {
		t.Error("a duplicate is to be woken when the other instance leaves, and else not")
	}
	if !hostPassedOn().Delete(event.DeleteEvent{Object: leaves}) {
		t.Error("an instance that is gone wakes nobody")
	}
	x.change(x.sharer(), remove)
	if !woken(rebound) {
		t.Error("an instance that is being removed is not woken when the other one is bound to the Node")
	}
}
