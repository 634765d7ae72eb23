package main

import (
	"slices"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func checkLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestBoard(t *testing.T) {
	instance := func(change func(*v1alpha1.WindowsInstance)) []v1alpha1.WindowsInstance {
		i := v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.WindowsInstanceSpec{Address: "10.9.0.1"}}
		change(&i)
		return []v1alpha1.WindowsInstance{i}
	}
	step := func(i *v1alpha1.WindowsInstance) {
		i.Status.Summary = "InProgress"
		i.Status.Step = &v1alpha1.StepStatus{Name: "Receive payload", Index: 4, Total: 30, Detail: "3 of 5 MiB"}
	}
	ready := func(i *v1alpha1.WindowsInstance) {
		i.Status = v1alpha1.WindowsInstanceStatus{
			Summary: "Ready", NodeRef: &v1alpha1.NodeReference{Name: "instance-1"},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
		}
	}
	t.Run("each change of a host is reported once", func(t *testing.T) {
		b := &hostBoard{}
		checkLines(t, b.updateState(instance(func(*v1alpha1.WindowsInstance) {}), nil), "a (10.9.0.1): New")
		checkLines(t, b.updateState(instance(step), nil), "a (10.9.0.1): InProgress 4/30, Receive payload: 3 of 5 MiB")
		checkLines(t, b.updateState(instance(step), nil))
		checkLines(t, b.updateState(instance(ready), nil), "a (10.9.0.1): Ready, node instance-1")
		checkLines(t, b.updateState(instance(ready), nil))
	})
	t.Run("an obstacle has its message", func(t *testing.T) {
		checkLines(t, (&hostBoard{}).updateState(instance(func(i *v1alpha1.WindowsInstance) {
			i.Status.Summary, i.Status.NextAction = "Unreachable", "Look at the host."
		}), nil), "a (10.9.0.1): Unreachable, Look at the host.")
		checkLines(t, (&hostBoard{}).updateState(instance(func(i *v1alpha1.WindowsInstance) {
			i.Status.Summary = "Unreachable"
			i.Status.Conditions = []metav1.Condition{{Status: metav1.ConditionFalse, Reason: "Unreachable", Message: "no answer"}}
		}), nil), "a (10.9.0.1): Unreachable, no answer")
	})
	t.Run("all are Ready when as many as expected are there and none is not", func(t *testing.T) {
		b := &hostBoard{}
		if b.hasAllReady(1) {
			t.Error("nobody is there")
		}
		b.updateState(instance(ready), nil)
		if !b.hasAllReady(1) || b.hasAllReady(2) {
			t.Errorf("one of one: %t, one of two: %t", b.hasAllReady(1), b.hasAllReady(2))
		}
		b.updateState(instance(func(i *v1alpha1.WindowsInstance) { ready(i); i.Spec.DesiredState = v1alpha1.DesiredStateRemoved }), nil)
		if b.hasAllReady(1) {
			t.Error("one that is to be removed is Ready")
		}
	})
	for name, c := range map[string]struct {
		last func(*v1alpha1.WindowsInstance)
		want string
	}{
		"that was restored": {func(i *v1alpha1.WindowsInstance) {
			i.Spec.DesiredState, i.Status.HostKey = v1alpha1.DesiredStateRemoved, &v1alpha1.HostKey{}
		}, "a (10.9.0.1): removed, the host was restored"},
		"that was never reached": {func(i *v1alpha1.WindowsInstance) {
			i.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		}, "a (10.9.0.1): removed, the host was never reached"},
		"whose instance somebody has deleted": {ready, "a (10.9.0.1): removed"},
	} {
		t.Run("a host that leaves is named once more and forgotten: one "+name, func(t *testing.T) {
			b := &hostBoard{}
			b.updateState(instance(c.last), nil)
			checkLines(t, b.updateState(nil, nil), c.want)
			checkLines(t, b.updateState(nil, nil))
		})
	}
}

func TestBoard_ReportsMachines(t *testing.T) {
	machine := func(phase string) []machinev1.Machine {
		m := machinev1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}}
		if phase != "" {
			m.Status.Phase = &phase
		}
		return []machinev1.Machine{m}
	}
	b := &hostBoard{}
	checkLines(t, b.updateState(nil, machine("")), "win-a (no address yet): Machine is new")
	checkLines(t, b.updateState(nil, machine("Provisioning")), "win-a (no address yet): Machine Provisioning")
	checkLines(t, b.updateState(nil, machine("Provisioning")))
	if b.hasAllReady(1) {
		t.Error("a Machine without an instance is Ready")
	}
	removed := v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}}
	removed.Spec.Source.Machine, removed.Spec.DesiredState = &v1alpha1.MachineReference{Name: "win-a"}, v1alpha1.DesiredStateRemoved
	checkLines(t, b.updateState([]v1alpha1.WindowsInstance{removed}, machine("Provisioning")), "win-a (no address yet): New")
	checkLines(t, b.updateState(nil, nil), "win-a (no address yet): removed, its Machine is gone",
		"win-a (no address yet): deleted, the Machine is gone, and its virtual machine with it")
}
