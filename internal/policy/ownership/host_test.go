package ownership

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func claimant(name, node, hostKey string, age time.Duration) v1alpha1.WindowsInstance {
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

func removed(instance v1alpha1.WindowsInstance) v1alpha1.WindowsInstance {
	instance.Spec.DesiredState = v1alpha1.DesiredStateRemoved
	return instance
}

func TestWhetherAHostGoesOnWithAnotherInstance(t *testing.T) {
	at := func(name, node string, confirmed bool, address string) v1alpha1.WindowsInstance {
		instance := claimant(name, node, "key", 0)
		instance.Spec.DesiredState = v1alpha1.DesiredStateNode
		instance.Status.NodeRef.Confirmed, instance.Status.Host.Addresses = confirmed, []string{address}
		if node == "" {
			instance.Status.NodeRef = nil
		}
		return instance
	}
	unmanaged := func(instance v1alpha1.WindowsInstance) v1alpha1.WindowsInstance {
		instance.Spec.DesiredState = v1alpha1.DesiredStateUnmanaged
		return instance
	}
	entry := removed(at("entry", "win", true, "10.0.0.8"))
	unread := entry
	unread.Status.Host = nil
	for name, c := range map[string]struct {
		removed, other v1alpha1.WindowsInstance
		want           bool
	}{
		"one that has the Node": {entry, at("other", "win", true, "10.0.0.8"), true},
		"one that has moved to a new address and has not joined yet": {entry, at("other", "win", false, "10.0.0.9"),
			true},
		"one that was told that the host is another's, and takes it over": {entry, at("other", "", false, "10.0.0.8"), true},
		"not one that is being removed too": {entry,
			removed(at("other", "win", true, "10.0.0.8")), false},
		"not itself": {entry, at("entry", "win", true, "10.0.0.8"),
			false},
		"not one that is left alone and has not configured it": {entry,
			unmanaged(at("other", "", false, "10.0.0.8")), false},
		"one that is left alone and has configured it": {entry,
			unmanaged(at("other", "win", true, "10.0.0.8")), true},
		"not a node of its own that was made of the same image": {entry, at("other", "winworker", true, "10.0.0.9"),
			false},
		"a node of another name at the same address": {entry, at("other", "winworker", true, "10.0.0.8"),
			true},
		"not while nothing is known of the host": {unread, at("other", "win", true, "10.0.0.8"),
			false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := GoesOnWith(&c.other, &c.removed); got != c.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}
