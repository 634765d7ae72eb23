package nodeidentity

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func newClaimant(name, node, hostKey string, age time.Duration) v1alpha1.WindowsInstance {
	return v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0,
			time.UTC).Add(-age))},
		Spec: v1alpha1.WindowsInstanceSpec{Address: name + ".example.com"},
		Status: v1alpha1.WindowsInstanceStatus{
			NodeRef: &v1alpha1.NodeReference{Name: node}, HostKey: &v1alpha1.HostKey{Key: hostKey},
			Host: &v1alpha1.HostStatus{MachineID: hostKey},
		},
	}
}

func withRemovedState(instance v1alpha1.WindowsInstance) v1alpha1.WindowsInstance {
	instance.Spec.DesiredState = v1alpha1.DesiredStateRemoved
	return instance
}

//
func TestFateOf_HostOfRemovedInstance(t *testing.T) {
	at := func(name, node, uid, address string) v1alpha1.WindowsInstance {
		instance := newClaimant(name, node, "key", 0)
		instance.Spec.DesiredState = v1alpha1.DesiredStateNode
		instance.Status.NodeRef.Confirmed, instance.Status.NodeRef.UID = true, uid
		instance.Status.Host.Addresses = []string{address}
		if node == "" {
			instance.Status.NodeRef = nil
		}
		return instance
	}
	unmanaged := func(instance v1alpha1.WindowsInstance) v1alpha1.WindowsInstance {
		instance.Spec.DesiredState = v1alpha1.DesiredStateUnmanaged
		return instance
	}
	unconfirmed := func(instance v1alpha1.WindowsInstance) v1alpha1.WindowsInstance {
		instance.Status.NodeRef.Confirmed = false
		return instance
	}
	ofMachine := func(instance v1alpha1.WindowsInstance) v1alpha1.WindowsInstance {
		instance.Spec.Source.Machine = &v1alpha1.MachineReference{Name: instance.Name}
		return instance
	}
	entry := withRemovedState(at("entry", "win", "1", "10.0.0.8"))
	nameless := withRemovedState(at("entry", "", "", "10.0.0.8"))
	unread := entry
	unread.Status.Host = nil
	node := nodeNamed("win", func(n *corev1.Node) { n.UID = "1" })
	for name, c := range map[string]struct {
		removed, other v1alpha1.WindowsInstance
		want           Fate
	}{
		"it stays with an instance that is bound to the Node": {entry, at("other", "win", "1", "10.0.0.8"), Unchanged},
		"it waits for one that moved to a new address and has not joined yet": {entry,
			unconfirmed(at("other", "win", "", "10.0.0.9")), Inherited},
		"it waits for one that has the name and is not bound to the Node yet": {entry, at("other", "win", "", "10.0.0.8"),
			Inherited},
		"it waits for one that was refused as a duplicate and takes it over": {entry, at("other", "", "", "10.0.0.8"),
			Inherited},
		"a duplicate that never was a node just goes": {nameless, at("other", "win", "1", "10.0.0.8"), Unchanged},
		"one of two that never were nodes just goes":  {nameless, at("other", "", "", "10.0.0.8"), Unchanged},
		"the one with the Node gives the host back":   {entry, withRemovedState(at("other", "", "", "10.0.0.8")), Restored},
		"the one with the Node gives the host back, and not one that only has its name": {entry,
			withRemovedState(at("a", "win", "", "10.0.0.8")), Restored},
		"a duplicate goes after the one with the Node": {nameless, withRemovedState(at("other", "win", "1", "10.0.0.8")), Follows},
		"of two that are bound to the Node the first by name gives it back": {entry,
			withRemovedState(at("another", "win", "1", "10.0.0.8")), Follows},
		"and the second goes after it": {entry, withRemovedState(at("other", "win", "1", "10.0.0.8")), Restored},
		"nobody waits for the instance of a Machine, whose host is gone": {nameless,
			ofMachine(withRemovedState(at("other", "win", "1", "10.0.0.8"))), Restored},
		"an instance does not wait for itself": {entry, at("entry", "win", "1", "10.0.0.8"), Restored},
		"not one that is left alone and has not configured it": {entry, unmanaged(at("other", "", "", "10.0.0.8")),
			Restored},
		"one that is left alone and has configured it": {entry, unmanaged(at("other", "win", "", "10.0.0.8")), Unchanged},
		"not a node of its own that was made of the same image": {entry, at("other", "winworker", "2", "10.0.0.9"),
			Restored},
		"nor one that is being removed too":          {entry, withRemovedState(at("another", "winworker", "2", "10.0.0.9")), Restored},
		"a node of another name at the same address": {entry, at("other", "winworker", "2", "10.0.0.8"), Unchanged},
		"not while nothing is known of the host":     {unread, at("other", "win", "1", "10.0.0.8"), Restored},
	} {
		t.Run(name, func(t *testing.T) {
			own := node
			if ConfirmedName(&c.removed) == "" {
				own = nil
			}
			fate, other := FateOf(&c.removed, own, []v1alpha1.WindowsInstance{c.removed, c.other})
			if fate != c.want || (other == nil) != (fate == Restored) {
				t.Errorf("it is %d for %v, want %d", fate, other, c.want)
			}
		})
	}
}

// An instance bound to the Node has priority over instances that wait for the Node, in any order of the list.
func TestFateOf_BoundInstanceHasPriority(t *testing.T) {
	entry := withRemovedState(newClaimant("entry", "win", "key", 0))
	entry.Status.NodeRef.Confirmed, entry.Status.NodeRef.UID = true, "1"
	bound, waiting := entry, newClaimant("waiting", "win", "key", 0)
	bound.Name, bound.Spec.DesiredState = "bound", v1alpha1.DesiredStateNode
	node := nodeNamed("win", func(n *corev1.Node) { n.UID = "1" })
	for _, instances := range [][]v1alpha1.WindowsInstance{{bound, waiting}, {waiting, bound}} {
		if fate, other := FateOf(&entry, node, instances); fate != Unchanged || other.Name != "bound" {
			t.Errorf("it is %d for %v", fate, other)
		}
	}
}

// Hosts created from one image have the same host key. If the address of an instance then leads to the host of
// another Node, the instance considers that host its own.
func TestFateOf_HostRunningElsewhereRestored(t *testing.T) {
	at := func(name, node, uid string) v1alpha1.WindowsInstance {
		instance := newClaimant(name, node, "key", 0)
		instance.Status.NodeRef.Confirmed, instance.Status.NodeRef.UID = true, uid
		instance.Status.Host.Addresses = []string{"10.0.0.8"}
		return instance
	}
	node := nodeNamed("win", func(n *corev1.Node) {
		n.UID = "1"
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	})
	entry := withRemovedState(at("entry", "win", "1"))
	astray := entry
	astray.Status.NodeRef = &v1alpha1.NodeReference{Name: "win", UID: "1", Confirmed: true, MachineID: "that of its Node"}
	broken := node.DeepCopy()
	broken.Status.Conditions = nil
	for name, c := range map[string]struct {
		removed v1alpha1.WindowsInstance
		node    *corev1.Node
		other   string
		want    Fate
	}{
		"not while its Node runs elsewhere":                        {astray, node, "winworker", Restored},
		"of an instance of the same Node":                          {astray, node, "win", Unchanged},
		"after the host of its Node was reinstalled under another": {astray, broken, "winworker", Unchanged},
		"after the host was renamed":                               {entry, node, "winworker", Unchanged},
	} {
		if fate, _ := FateOf(&c.removed, c.node, []v1alpha1.WindowsInstance{c.removed, at("other", c.other, "1")}); fate != c.want {
			t.Errorf("the host stays %s: it is %d", name, fate)
		}
	}
}
