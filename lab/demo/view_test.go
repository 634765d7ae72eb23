package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestRender(t *testing.T) {
	rows := []row{
		{name: "a", address: "10.9.0.1", status: "Ready", ready: true, detail: "node instance-1", started: start,
			ended: start.Add(9 * time.Second)},
		{name: "b", address: "instance-2.example.com", status: "InProgress", step: "3/12",
			detail: "Install containerd: 2 MiB", started: start},
	}
	t.Run("hosts that are not Ready come first, and time goes on for them only", func(t *testing.T) {
		got := render(rows, 3, start.Add(12*time.Second), screen{width: 100, height: 24})
		want := []string{
			"NAME  ADDRESS                 STATUS      STEP  ELAPSED  DETAIL",
			"b     instance-2.example.com  InProgress  3/12  12s      Install containerd: 2 MiB",
			"a     10.9.0.1                Ready             9s       node instance-1",
			"1 of 3 Ready, 12s",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	t.Run("a narrow terminal cuts the detail", func(t *testing.T) {
		for _, line := range render(rows, 2, start, screen{width: 60, height: 24}) {
			if n := len([]rune(line)); n > 60 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	})
	t.Run("a low terminal shows what fits, and counts the rest", func(t *testing.T) {
		var many []row
		for range 50 {
			many = append(many, rows...)
		}
		got := render(many, 100, start, screen{width: 100, height: 13})
		if len(got) != 12 || !strings.HasPrefix(got[11], "50 of 100 Ready") || !strings.Contains(got[11], "(90 more hosts)") {
			t.Errorf("got %d lines, the last: %s", len(got), got[len(got)-1])
		}
	})
	t.Run("before the first host there is a count", func(t *testing.T) {
		if got := render(nil, 2, start, screen{width: 80, height: 24}); got[len(got)-1] != "0 of 2 Ready, 0s" {
			t.Errorf("got %v", got)
		}
	})
}

func TestBoard(t *testing.T) {
	instance := func(change func(*v1alpha1.WindowsInstance)) *v1alpha1.WindowsInstance {
		i := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec: v1alpha1.WindowsInstanceSpec{Address: "10.9.0.1"}}
		change(i)
		return i
	}
	ready := instance(func(i *v1alpha1.WindowsInstance) {
		i.Status = v1alpha1.WindowsInstanceStatus{
			Summary: "Ready", NodeRef: &v1alpha1.NodeReference{Name: "instance-1"},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
		}
	})
	newBoard := func() *board {
		return &board{rows: map[string]row{}, instances: map[string]*v1alpha1.WindowsInstance{}}
	}

	t.Run("a step is shown with its count and detail", func(t *testing.T) {
		got, changed := newBoard().update(watch.Added, instance(func(i *v1alpha1.WindowsInstance) {
			i.Status.Summary = "InProgress"
			i.Status.Step = &v1alpha1.StepStatus{Name: "Receive payload", Index: 4, Of: 30, Detail: "3 of 5 MiB"}
		}), start)
		if !changed || line(got) != "a (10.9.0.1): InProgress 4/30, Receive payload: 3 of 5 MiB" {
			t.Errorf("%t %s", changed, line(got))
		}
	})
	t.Run("the time to Ready is kept through later changes", func(t *testing.T) {
		b := newBoard()
		b.update(watch.Added, instance(func(*v1alpha1.WindowsInstance) {}), start)
		b.update(watch.Modified, ready, start.Add(7*time.Second))
		got, changed := b.update(watch.Modified, ready, start.Add(time.Minute))
		if changed || got.elapsed(start.Add(time.Hour)) != 7*time.Second {
			t.Errorf("changed %t, elapsed %s", changed, got.elapsed(start.Add(time.Hour)))
		}
	})
	t.Run("all are Ready when as many as expected are there and none is not", func(t *testing.T) {
		b := newBoard()
		if b.allReady(1) {
			t.Error("nobody is there")
		}
		b.update(watch.Added, ready, start)
		if !b.allReady(1) || b.allReady(2) {
			t.Errorf("one of one: %t, one of two: %t", b.allReady(1), b.allReady(2))
		}
	})
	t.Run("a host that leaves is named once more and forgotten", func(t *testing.T) {
		b := newBoard()
		b.update(watch.Added, ready, start)
		got, changed := b.update(watch.Deleted, ready, start)
		if !changed || got.status != "removed" || len(b.list()) != 0 {
			t.Errorf("%t %+v %v", changed, got, b.list())
		}
	})
}

func TestBoardOfMachines(t *testing.T) {
	machine := func(phase string) *machinev1.Machine {
		m := &machinev1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}}
		if phase != "" {
			m.Status.Phase = &phase
		}
		return m
	}
	b := newBoard()
	t.Run("a Machine is shown as long as it has no instance", func(t *testing.T) {
		if r, changed := b.updateMachine(watch.Added, machine("Provisioning"), start); !changed ||
			r.status != "Machine Provisioning" {
			t.Errorf("got %+v, changed %t", r, changed)
		}
		if _, changed := b.updateMachine(watch.Modified, machine("Provisioning"), start); changed {
			t.Error("nothing has changed, and it says so")
		}
		if rows := b.list(); len(rows) != 1 || rows[0].ready || b.allReady(1) {
			t.Errorf("the rows are %+v", rows)
		}
		b.update(watch.Added, &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}}, start)
		if rows := b.list(); len(rows) != 1 || rows[0].status != "New" {
			t.Errorf("the rows are %+v", rows)
		}
	})
	t.Run("nothing is left of a Machine that is gone", func(t *testing.T) {
		gone := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}}
		gone.Spec.Source.Machine = &v1alpha1.MachineReference{Name: "win-a"}
		gone.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		if r, _ := b.update(watch.Deleted, gone, start); r.detail != "its Machine is gone" {
			t.Errorf("got %+v", r)
		}
		if r, changed := b.updateMachine(watch.Deleted, machine("Deleting"), start); !changed || r.status != "deleted" ||
			len(b.list()) != 0 {
			t.Errorf("got %+v, changed %t, and %v", r, changed, b.list())
		}
	})
}

func TestTableLines(t *testing.T) {
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Desired"},
			{Name: "Selector", Priority: 1}, {Name: "Age"}},
		Rows: []metav1.TableRow{{Cells: []any{"windows", 3, "x=y", "5s"}}, {Cells: []any{"w", nil, "", "10m"}}},
	}
	want := []string{"NAME     DESIRED  AGE", "windows  3        5s", "w                 10m"}
	if got := tableLines(table); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
