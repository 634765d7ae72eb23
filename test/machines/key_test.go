package machines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// waitForKeyHash waits until all Windows nodes have the hash of the current key.
func (l lab) waitForKeyHash(count int) {
	l.Helper()
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "all Windows nodes to have the new key", &corev1.Node{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				var nodes corev1.NodeList
				err := reader.List(ctx, &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"})
				other := func(n corev1.Node) bool {
					return n.Annotations["windowsmachineconfig.openshift.io/pub-key-hash"] != l.KeyHash()
				}
				return len(nodes.Items) == count && !slices.ContainsFunc(nodes.Items, other), err
			})
	})
}

// followMachines watches all Windows Machines from now on. The returned function waits until all Machines are
// replaced and Running. It returns the maximum numbers of Machines that were out of service and being deleted at
// the same time.
func (l lab) followMachines() func(before []string) (unavailable, deleting int) {
	l.Helper()
	var list machinev1.MachineList
	windows := client.MatchingLabels{"machine.openshift.io/os-id": "Windows", "machine.openshift.io/cluster-api-machine-role": "worker"}
	l.requireNoError(l.Client.List(l.Context(), &list, windows))
	since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	watching, err := l.Client.Watch(l.Context(), &machinev1.MachineList{}, since, windows)
	l.requireNoError(err)
	l.Cleanup(watching.Stop)
	machines := map[string]machine{}
	for _, m := range list.Items {
		machines[m.Name] = m
	}
	return func(before []string) (unavailable, deleting int) {
		l.Helper()
		l.inTime(func(ctx context.Context) error {
			for {
				select {
				case <-ctx.Done():
					return fmt.Errorf("the Machines are %v: %w", slices.Sorted(maps.Keys(machines)), ctx.Err())
				case event, open := <-watching.ResultChan():
					m, ok := event.Object.(*machine)
					if !open || !ok {
						return fmt.Errorf("the watch has ended: %+v", event.Object)
					}
					if machines[m.Name] = *m; event.Type == watch.Deleted {
						delete(machines, m.Name)
					}
				}
				unavailableNow, deletingNow, old := countMachines(machines, before)
				unavailable, deleting = max(unavailable, unavailableNow), max(deleting, deletingNow)
				if old == 0 && unavailableNow == 0 && len(machines) == len(before) {
					return nil
				}
			}
		})
		return unavailable, deleting
	}
}

// countMachines counts the Machines that are out of service, that are being deleted, and that existed before.
func countMachines(machines map[string]machine, before []string) (unavailable, deleting, old int) {
	for name, m := range machines {
		if m.DeletionTimestamp != nil {
			deleting++
		}
		if m.DeletionTimestamp != nil || ptr.Deref(m.Status.Phase, "") != machinev1.PhaseRunning {
			unavailable++
		}
		if slices.Contains(before, name) {
			old++
		}
	}
	return unavailable, deleting, old
}

//
func TestKeyRotation_MachinesReplacedOneAtATime(t *testing.T) {
	l := start(t, "AWS", testenv.Options{LinuxNodes: 2})
	unchanged := e2e.ForeignMachines(t, l.Environment)
	l.startOperator()
	l.createMachineSet("windows-a", 2, testenv.MachineSetOptions{})
	l.createMachineSet("windows-b", 1, testenv.MachineSetOptions{})
	before := append(l.waitUntilReady("windows-a", 2), l.waitUntilReady("windows-b", 1)...)

	unavailable := l.followMachines()
	l.requireNoError(l.RotateKey(t.Context(), false))
	// A deleted Machine and its replacement are out of service at the same time.
	if most, deleting := unavailable(before); most > 2 || deleting > 1 {
		t.Errorf("%d Machines were away at once, and %d were being deleted", most, deleting)
	}
	l.waitUntilReady("windows-a", 2)
	l.waitUntilReady("windows-b", 1)
	l.waitForKeyHash(3)
	unchanged(t)
	var nodes corev1.NodeList
	l.requireNoError(l.Client.List(t.Context(), &nodes, client.MatchingLabels{corev1.LabelOSStable: "linux"}))
	for _, node := range nodes.Items {
		if _, ok := node.Annotations["windowsmachineconfig.openshift.io/pub-key-hash"]; ok {
			t.Errorf("Linux node %s has the annotation", node.Name)
		}
	}
}

//
func TestKeyRotation_MachinesKeptIfPreviousKeyIsKept(t *testing.T) {
	l := start(t, "AWS", testenv.Options{Hosts: testenv.Hosts(1)})
	l.startOperator()
	l.requireNoError(l.ListHosts(t.Context()))
	l.createMachineSet("windows", 2, testenv.MachineSetOptions{})
	before := l.waitUntilReady("windows", 2)
	l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })

	l.requireNoError(l.RotateKey(t.Context(), true))
	l.waitForKeyHash(3)
	if after := l.waitUntilReady("windows", 2); !slices.Equal(after, before) {
		t.Errorf("Machines are %v, before %v", after, before)
	}
}

//
func TestKeyRotation_ListedHostUsesNewKeyOnceAuthorized(t *testing.T) {
	l := start(t, "AWS", testenv.Options{Hosts: testenv.Hosts(1)})
	l.startOperator()
	l.requireNoError(l.ListHosts(t.Context()))
	l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })
	host := l.Hosts()[0]

	l.requireNoError(l.RotateKey(t.Context(), false))
	l.inTime(func(ctx context.Context) error {
		return l.WaitForInstance(ctx, host, "to say that its key is not up to date, and be Ready",
			func(i *v1alpha1.WindowsInstance) bool {
				return i != nil && meta.IsStatusConditionFalse(i.Status.Conditions, v1alpha1.ConditionUpToDate) &&
					meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady)
			})
	})
	l.requireNoError(host.AuthorizeKey(host.Options.Username, l.PublicKey()))
	l.waitForKeyHash(1)
	l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })
}
