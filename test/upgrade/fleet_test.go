package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// fleet contains MachineSets and listed hosts with a workload.
type fleet struct {
	lab
	sets     []string
	replicas int
	*workload
}

// nodeCount returns the number of nodes.
func (f fleet) nodeCount() int { return len(f.sets)*f.replicas + len(f.Hosts()) }

// machineNames returns the names of all Windows Machines.
func (l lab) machineNames() (names []string) {
	l.Helper()
	machines, err := l.Machines(l.Context(), "")
	l.requireNoError(err)
	for _, machine := range machines {
		names = append(names, machine.Name)
	}
	return names
}

// newReadyFleet makes the complete fleet Ready with the initial release.
func (l lab) newReadyFleet(sets, replicas, pods int) fleet {
	l.Helper()
	f := fleet{lab: l, replicas: replicas}
	l.requireNoError(l.ListHosts(l.Context()))
	for i := range sets {
		name := fmt.Sprintf("windows-%c", 'a'+i)
		f.sets = append(f.sets, name)
		l.requireNoError(l.CreateMachineSet(l.Context(), name, int32(replicas), testenv.MachineSetOptions{}))
	}
	for _, set := range f.sets {
		l.runWithTimeout(2*time.Minute, func(ctx context.Context) error {
			_, err := l.WaitMachinesReady(ctx, set, replicas)
			return err
		})
	}
	l.waitUntilUpgraded(initial, f.nodeCount(), 2*time.Minute)
	f.workload = l.deployWorkload(pods)
	return f
}

// A fleet of Machines and listed hosts is upgraded through three releases.
func TestUpgrade_FleetUpgradedThroughThreeReleases(t *testing.T) {
	l := start(t, withMachines, testenv.Options{Hosts: testenv.Hosts(2), LinuxNodes: 2})
	checkUnchanged := e2e.ForeignMachines(t, l.Environment)
	o := l.startOperator(initial)
	f := l.newReadyFleet(2, 2, 8)
	l.waitForIdle()

	//
	replaced := t.Run("by default Machines are replaced and hosts changed in place, one at a time", func(t *testing.T) {
		l := l.forSubtest(t)
		before, w := l.machineNames(), l.watchAvailability(f.workload)
		warned := l.listWarnings()
		o = l.upgradeOperator(o, patch)
		l.waitUntilUpgraded(patch, f.nodeCount(), fleetTimeout)
		f.waitForPods(8)
		w.checkBudget(1, 7)
		after := l.machineNames()
		for _, name := range before {
			if slices.Contains(after, name) {
				t.Errorf("Machine %s was not replaced", name)
			}
		}
		for _, h := range l.Hosts() {
			if n := bootCount(h); n > 2 { // the first boot, and a restart for the features
				t.Errorf("host %s was started %d times", h.Options.Name, n)
			}
		}
		if raised := l.listWarnings()[len(warned):]; len(raised) > 0 {
			t.Errorf("an upgrade in which nothing fails raises warnings:\n%s", strings.Join(raised, "\n"))
		}
		checkUnchanged(t)
		l.waitForIdle()
	})
	if !replaced {
		return
	}

	// D-1
	t.Run("a release that changes nothing on hosts moves the annotations only", func(t *testing.T) {
		l := l.forSubtest(t)
		before, w := l.machineNames(), l.watchAvailability(f.workload)
		done := map[*testenv.Host]int{}
		for _, h := range l.allHosts() {
			done[h] = serviceOperations(h)
		}
		connections := l.Connections()
		o = l.upgradeOperator(o, unchanged)
		l.waitUntilUpgraded(unchanged, f.nodeCount(), waitTimeout)
		w.checkBudget(0, 8)
		if after := l.machineNames(); !slices.Equal(before, after) {
			t.Errorf("Machines were %v, and are %v", before, after)
		}
		for h, n := range done {
			if serviceOperations(h) != n {
				t.Errorf("host %s: services were touched", h.Options.Name)
			}
		}
		if n := l.Connections() - connections; n > 0 {
			t.Errorf("hosts were contacted %d times", n)
		}
		l.waitForIdle()
	})

	// D-1
	t.Run("with the strategy InPlace no virtual machine is replaced, and only what differs travels", func(t *testing.T) {
		l := l.forSubtest(t)
		l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.UpgradeStrategy = v1alpha1.UpgradeInPlace })
		for _, name := range l.machineNames() {
			l.runWithTimeout(waitTimeout, func(ctx context.Context) error {
				return l.WaitForMachineInstance(ctx, name, "to be changed in place", func(i *v1alpha1.WindowsInstance) bool {
					return i != nil && i.Spec.UpgradeStrategy == v1alpha1.UpgradeInPlace
				})
			})
		}
		before, w := l.machineNames(), l.watchAvailability(f.workload)
		got := map[string]int64{}
		for _, name := range before {
			got[name] = receivedBytes(l.MachineHost(name))
		}
		o = l.upgradeOperator(o, patch2)
		l.waitUntilUpgraded(patch2, f.nodeCount(), fleetTimeout)
		f.waitForPods(8)
		w.checkBudget(1, 7)
		if after := l.machineNames(); !slices.Equal(before, after) {
			t.Errorf("Machines were %v, and are %v", before, after)
		}
		for name, total := range got {
			files, sent := total-agentBytes, receivedBytes(l.MachineHost(name))-total-agentBytes
			t.Logf("beside the agent, %s got %d bytes at first and %d for the patch release, %.1f %%", name, files, sent, 100*float64(sent)/float64(files))
			if sent*10 > files {
				t.Errorf("beside the agent, the patch release has sent %d bytes to %s, more than a tenth of the %d of the first time", sent, name, files)
			}
		}
		l.waitForIdle()
	})
}

// listWarnings returns the operator's Warning events.
func (l lab) listWarnings() (warnings []string) {
	l.Helper()
	var events corev1.EventList
	l.requireNoError(l.Client.List(l.Context(), &events))
	slices.SortFunc(events.Items, func(a, b corev1.Event) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning && e.ReportingController == "windows-machine-config-operator" {
			warnings = append(warnings, fmt.Sprintf("%s %s: %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message))
		}
	}
	return warnings
}

// A deleted virtual machine and a host that is off neither delay an upgrade nor make it fail.
//
func TestUpgrade_DeadHostsDoNotBlock(t *testing.T) {
	l := start(t, withMachines, testenv.Options{Hosts: testenv.Hosts(3), LinuxNodes: 1, Clock: fastClock(t)})
	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
		p.UpgradeStrategy, p.FailureDeadline = v1alpha1.UpgradeInPlace, &metav1.Duration{Duration: 2 * time.Minute}
	})
	o := l.startOperator(initial)
	f := l.newReadyFleet(1, 2, 3)
	unreachable, destroyed := l.Host("instance-1"), l.machineNames()[0]
	// The pods of dead hosts count as unhealthy until Kubernetes deletes them, minutes later. The effect on their
	// budget is not tested here.
	f.setBudget(0)
	w := l.watchAvailability(nil, unreachable.NodeName(), destroyed)

	unreachable.Machine().PowerOff()
	l.requireNoError(l.DestroyMachineHost(t.Context(), destroyed))
	destroyedNode := l.machineNode(destroyed)
	warned := len(l.listWarnings())
	o = l.upgradeOperator(o, patch)
	l.waitUntilUpgraded(patch, f.nodeCount()-2, fleetTimeout, unreachable.NodeName(), destroyedNode)
	w.checkBudget(1, 0)
	for _, warning := range l.listWarnings()[warned:] {
		if strings.Contains(warning, v1alpha1.ReasonMaxUnavailableReached) ||
			strings.Contains(warning, v1alpha1.ReasonReplacementPending) {
			t.Errorf("a host that merely waits raises a warning: %s", warning)
		}
	}
	t.Run("the host that was off is upgraded when it is back", func(t *testing.T) {
		l := l.forSubtest(t)
		l.requireNoError(unreachable.Machine().Boot(t.Context()))
		l.waitUntilUpgraded(patch, f.nodeCount()-1, 2*time.Minute, destroyedNode)
		l.requireNoError(o.Stop())
	})
}

// machineNode returns the Node name of a Machine.
func (l lab) machineNode(name string) string {
	l.Helper()
	machine, err := l.Machine(l.Context(), name)
	l.requireNoError(err)
	if machine == nil || machine.Status.NodeRef == nil {
		l.Fatalf("Machine %s has no node", name)
	}
	return machine.Status.NodeRef.Name
}

// podOn creates a pod on a node, optionally modified by change, and waits until the pod runs.
func (l lab) podOn(node, namespace, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	l.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: podSpec()}
	pod.Spec.NodeName = node
	for _, apply := range change {
		apply(pod)
	}
	l.requireNoError(l.Client.Create(l.Context(), pod))
	l.awaitCondition("pod "+name+" to run", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		p := &corev1.Pod{}
		err := reader.Get(ctx, client.ObjectKeyFromObject(pod), p)
		return err == nil && isPodReady(p), client.IgnoreNotFound(err)
	})
	return pod
}
