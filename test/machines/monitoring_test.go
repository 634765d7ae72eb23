package machines

import (
	"context"
	"maps"
	"slices"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// waitForScraped waits until Prometheus discovers the exporter of a node, or no longer discovers it.
func (l lab) waitForScraped(node string, want bool) {
	l.Helper()
	isOnNode := func(e discoveryv1.Endpoint) bool { return *e.NodeName == node }
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "another list of the exporters", &discoveryv1.EndpointSlice{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				var list discoveryv1.EndpointSliceList
				err := reader.List(ctx, &list, client.InNamespace(l.Namespace()),
					client.MatchingLabels{discoveryv1.LabelServiceName: monitoring.Name})
				return want == slices.ContainsFunc(list.Items, func(s discoveryv1.EndpointSlice) bool {
					return slices.ContainsFunc(s.Endpoints, isOnNode)
				}), err
			})
	})
}

//
func TestScrapeTargets_NodeOfDeletedMachineRemoved(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	l.startOperator()
	l.createMachineSet("windows", 2, testenv.MachineSetOptions{})
	names := l.waitUntilReady("windows", 2)
	var nodes []string
	for _, name := range names {
		nodes = append(nodes, l.nodeOf(name).Name)
		l.waitForScraped(l.nodeOf(name).Name, true)
	}
	l.changeMachine(names[0], func(m *machine) {
		m.Spec.LifecycleHooks.PreDrain = []machinev1.LifecycleHook{{Name: "test", Owner: "test"}}
	})
	l.requireNoError(l.DeleteMachine(t.Context(), names[0]))
	l.waitForScraped(nodes[0], false)
	if node := l.nodeOf(names[0]); !nodeidentity.IsReady(node) {
		t.Error("its node was not Ready any more, before its address was taken away")
	}
	l.waitForScraped(nodes[1], true)
	l.changeMachine(names[0], func(m *machine) { m.Spec.LifecycleHooks.PreDrain = nil })
	l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, names[0], nodes[0]) })
	for _, name := range l.waitUntilReady("windows", 2) { // includes a new Machine
		l.waitForScraped(l.nodeOf(name).Name, true)
	}
}

//
func TestScrapeTargets_CorrectDuringRestartUpgradeAndReplacement(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	recorded := l.recordScrapes()
	o := l.startOperator()
	l.createMachineSet("windows", 2, testenv.MachineSetOptions{})
	first := l.waitUntilReady("windows", 2)
	for _, name := range first {
		l.waitForScraped(l.nodeOf(name).Name, true)
	}
	l.requireNoError(o.Stop())
	o = l.startOperator() // a restart
	l.waitUntilReady("windows", 2)
	l.requireNoError(o.Stop())
	_, err := l.RunOperator(func(c *operator.Config) { c.Version = "1.1.0-lab" })
	l.requireNoError(err)
	for _, name := range l.waitUntilReady("windows", 2) {
		l.waitForInstance(name, "to be upgraded", func(i *v1alpha1.WindowsInstance) bool { return i.Status.Version == "1.1.0-lab" })
	}
	for _, name := range first {
		node := l.nodeOf(name).Name
		// A virtual machine in a cloud takes many seconds to shut down, a virtual machine in the lab none.
		l.changeMachine(name, func(m *machine) {
			m.Spec.LifecycleHooks.PreTerminate = []machinev1.LifecycleHook{{Name: "shuts-down", Owner: "test"}}
		})
		l.requireNoError(l.DeleteMachine(t.Context(), name))
		l.waitForScraped(node, false)
		l.changeMachine(name, func(m *machine) { m.Spec.LifecycleHooks.PreTerminate = nil })
		l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, name, node) })
		for _, other := range l.waitUntilReady("windows", 2) {
			l.waitForScraped(l.nodeOf(other).Name, true)
		}
	}
	var nodes []string
	for _, name := range l.waitUntilReady("windows", 2) {
		if slices.Contains(first, name) {
			t.Errorf("Machine %s was not replaced", name)
		}
		nodes = append(nodes, l.nodeOf(name).Name)
	}
	slices.Sort(nodes)
	history := recorded.waitForChanges(l, "the last list to be seen", func(history []change) bool {
		now := map[string][]string{}
		for _, c := range history {
			if c.slice {
				now[c.object] = nil
				for _, listed := range c.targets {
					now[c.object] = append(now[c.object], listed.node)
				}
			}
		}
		return slices.Equal(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(now))...))), nodes)
	})
	for _, fault := range scrapeFaults(history) {
		t.Error(fault)
	}
}
