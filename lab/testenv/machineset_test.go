package testenv

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/cluster"
)

//
func TestMachineSet_FromZeroToReady(t *testing.T) {
	r, err := New(t.Context(), Options{
		MachineAPI: true, LinuxNodes: 1, ControlPlane: cluster.Options{Platform: platformAWS},
		VM: VMOptions{UserDataDelay: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := newTimeoutContext(t, 3*time.Minute)
	if _, err := r.InstallOperator(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if err := r.CreateKey(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.RunOperator(); err != nil {
		t.Fatal(err)
	}
	if err := r.CreateMachineSet(ctx, "windows", 0, MachineSetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitUserData(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Scale(ctx, "windows", 2); err != nil {
		t.Fatal(err)
	}
	names, err := r.WaitMachinesReady(ctx, "windows", 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the Linux nodes have their Machines beside them", func(t *testing.T) {
		var nodes corev1.NodeList
		if err := r.Client.List(ctx, &nodes, client.MatchingLabels{corev1.LabelOSStable: "linux"}); err != nil ||
			len(nodes.Items) != 3 {
			t.Errorf("%d Linux nodes, %v; want a control-plane node and two workers", len(nodes.Items), err)
		}
	})
	t.Run("nothing is left of a Machine that was deleted, and another one takes its place", func(t *testing.T) {
		machine, err := r.Machine(ctx, names[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := r.DeleteMachine(ctx, names[0]); err != nil {
			t.Fatal(err)
		}
		if err := r.WaitMachineGone(ctx, names[0], machine.Status.NodeRef.Name); err != nil {
			t.Fatal(err)
		}
		if _, err := r.WaitMachinesReady(ctx, "windows", 2); err != nil {
			t.Fatal(err)
		}
	})
}
