package byoh

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
)

// collidingKeys returns two keys with the same InstanceName: one host name in two cases. An author of the list can find
// such keys in a second.
func collidingKeys(t *testing.T) (first, second string) {
	t.Helper()
	const name = "abcdefghijklmnopqrstuvwxyz.example.com"
	seen := map[string]string{}
	for bits := range 1 << 20 {
		key := []byte(name)
		for i := range 20 {
			if bits>>i&1 == 1 {
				key[i] -= 'a' - 'A'
			}
		}
		short := hostlist.InstanceName(string(key))
		if other, ok := seen[short]; ok {
			return min(other, string(key)), max(other, string(key))
		}
		seen[short] = string(key)
	}
	t.Fatal("no two keys collide")
	return "", ""
}

//
func TestReconcile_CollidingKeysAreTwoHosts(t *testing.T) {
	first, second := collidingKeys(t)
	entries := map[string]string{first: "username=core", second: "username=core"}
	names := func(l *list) map[string]string {
		names := map[string]string{}
		for _, instance := range l.listInstances() {
			names[instance.Spec.Source.ConfigMapKey] = instance.Name
		}
		return names
	}
	t.Run("listed at once, each has an instance", func(t *testing.T) {
		l := newList(t, 0)
		l.writeEntries(entries)
		l.reconcileList()
		got := names(l)
		if len(got) != 2 || got[first] != hostlist.InstanceName(first) || got[second] != hostlist.LongInstanceName(second) {
			t.Errorf("the instances are %v", got)
		}
	})
	t.Run("an instance keeps its name whatever comes and goes", func(t *testing.T) {
		l := newList(t, 0)
		l.writeEntries(map[string]string{second: "username=core"})
		l.reconcileList()
		l.writeEntries(entries)
		l.reconcileList()
		got := names(l)
		if len(got) != 2 || got[second] != hostlist.InstanceName(second) || got[first] != hostlist.LongInstanceName(first) {
			t.Fatalf("the instances are %v", got)
		}
		l.writeEntries(map[string]string{first: "username=core"})
		l.reconcileList()
		l.expectRemoved(1)
		for _, instance := range l.listInstances() {
			removed := instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved
			if removed != (instance.Name == hostlist.InstanceName(second)) {
				t.Errorf("%s is to be %s", instance.Name, instance.Spec.DesiredState)
			}
		}
	})
	t.Run("an instance of a Machine keeps its name too", func(t *testing.T) {
		l := newList(t, 0)
		machine := &v1alpha1.WindowsInstance{Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.0.9",
			Source: v1alpha1.Source{Machine: &v1alpha1.MachineReference{Name: "m"}}}}
		machine.Namespace, machine.Name = "wmco", hostlist.InstanceName(first)
		l.requireNoError(l.api.Create(t.Context(), machine))
		l.writeEntries(map[string]string{first: "username=core"})
		l.reconcileList()
		if got := names(l); got[first] != hostlist.LongInstanceName(first) {
			t.Errorf("the instances are %v", got)
		}
	})
}

// A foreign instance for a key that already has an instance must not become a second node.
func TestReconcile_SecondInstanceOfKeyRemoved(t *testing.T) {
	l := newList(t, 1)
	for _, name := range []string{"aaa", "zzz"} {
		second := l.listInstances()[0].DeepCopy()
		second.Name, second.ResourceVersion = name, ""
		second.Status = v1alpha1.WindowsInstanceStatus{}
		l.requireNoError(l.api.Create(t.Context(), second))
	}
	l.reconcileList()
	l.expectRemoved(2)
	for _, instance := range l.listInstances() {
		if strings.HasPrefix(instance.Name, "10-0-0-1-") != (instance.Spec.DesiredState == v1alpha1.DesiredStateNode) {
			t.Errorf("%s is to be %s", instance.Name, instance.Spec.DesiredState)
		}
	}
}
