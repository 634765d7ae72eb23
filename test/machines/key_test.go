package machines

import (
	"context"
	"slices"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// nodesHaveKey waits until all Windows nodes carry the hash of the present key.
func (l lab) nodesHaveKey(count int) {
	l.Helper()
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "all Windows nodes to have the new key", &corev1.Node{}, func(ctx context.Context, reader client.Reader) (bool, error) {
			var nodes corev1.NodeList
			err := reader.List(ctx, &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"})
			other := func(n corev1.Node) bool { return n.Annotations[v1alpha1.AnnotationPubKeyHash] != l.KeyHash() }
			return len(nodes.Items) == count && !slices.ContainsFunc(nodes.Items, other), err
		})
	})
}

//
func TestANewKeyReplacesMachinesOneAtATime(t *testing.T) {
	l := start(t, "AWS", rig.Options{LinuxNodes: 1})
	l.operate()
	l.machineSet("windows-a", 2, rig.MachineSetOptions{})
	l.machineSet("windows-b", 1, rig.MachineSetOptions{})
	before := append(l.ready("windows-a", 2), l.ready("windows-b", 1)...)

	l.must(l.RotateKey(t.Context(), false))
	most := 0
	l.inTime(func(ctx context.Context) error {
		return l.WaitForMachines(ctx, "", "all to be others", func(machines []machine) bool {
			away, old := 0, 0
			for _, m := range machines {
				if m.DeletionTimestamp != nil || ptr.Deref(m.Status.Phase, "") != machinev1.PhaseRunning {
					away++
				}
				if slices.Contains(before, m.Name) {
					old++
				}
			}
			// A Machine that goes and the one that comes in its place are away at the same time.
			most = max(most, away)
			return old == 0 && away == 0 && len(machines) == len(before)
		})
	})
	if most > 2 {
		t.Errorf("%d Machines were away at once", most)
	}
	l.ready("windows-a", 2)
	l.ready("windows-b", 1)
	l.nodesHaveKey(3)
	var nodes corev1.NodeList
	l.must(l.Client.List(t.Context(), &nodes, client.MatchingLabels{corev1.LabelOSStable: "linux"}))
	for _, node := range nodes.Items {
		if _, ok := node.Annotations[v1alpha1.AnnotationPubKeyHash]; ok {
			t.Errorf("Linux node %s has the annotation", node.Name)
		}
	}
}

//
func TestANewKeyGoesInPlaceWhereTheOldOneIsKept(t *testing.T) {
	l := start(t, "AWS", rig.Options{Hosts: rig.Hosts(1)})
	l.operate()
	l.must(l.ListHosts(t.Context()))
	l.machineSet("windows", 2, rig.MachineSetOptions{})
	before := l.ready("windows", 2)
	l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })

	l.must(l.RotateKey(t.Context(), true))
	l.nodesHaveKey(3)
	if after := l.ready("windows", 2); !slices.Equal(after, before) {
		t.Errorf("Machines are %v, before %v", after, before)
	}
}

//
func TestABringYourOwnHostTakesTheNewKeyWhenItKnowsIt(t *testing.T) {
	l := start(t, "AWS", rig.Options{Hosts: rig.Hosts(1)})
	l.operate()
	l.must(l.ListHosts(t.Context()))
	l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })
	host := l.Hosts()[0]

	l.must(l.RotateKey(t.Context(), false))
	l.inTime(func(ctx context.Context) error {
		return l.WaitForInstance(ctx, host, "to say that its key is not up to date, and be Ready", func(i *v1alpha1.WindowsInstance) bool {
			return i != nil && meta.IsStatusConditionFalse(i.Status.Conditions, v1alpha1.ConditionUpToDate) &&
				meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady)
		})
	})
	l.must(host.AuthorizeKey(host.Options.Username, l.PublicKey()))
	l.nodesHaveKey(1)
	l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })
}
