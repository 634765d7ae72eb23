package machines

import (
	"context"
	"regexp"
	"slices"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

type machine = machinev1.Machine

// Node labels and number of the pods in the story.
var (
	poolLabels = map[string]string{"example.com/pool": "web", "node-role.kubernetes.io/infra": ""}
	poolPods   = 6
)

// Machines are created, run pods and are deleted, next to listed hosts and Linux nodes. They are scaled up from
// zero, drained and scaled down, deleted against a budget, and deleted without a drain.
func TestStoryMachinesComeAndGoWithTheirPods(t *testing.T) {
	l := start(t, "AWS", testenv.Options{Hosts: testenv.Hosts(2), LinuxNodes: 1, BareNodes: true})
	trail := l.openTrail()
	l.startOperator()
	l.requireNoError(l.ListHosts(t.Context()))
	l.createMachineSet("windows", 0, testenv.MachineSetOptions{Labels: poolLabels})
	l.scaleMachineSet("windows", 3)
	names := l.waitUntilReady("windows", 3)
	l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })
	w := e2e.Deploy(t, l.Environment, int32(poolPods), poolLabels, "4")

	//
	t.Run("each Machine has a node with the labels of the Machine, which the operator has given it", func(t *testing.T) {
		lab{t, l.Environment}.checkWorkers(names)
	})
	//
	t.Run("columns are those that the guides show", func(t *testing.T) {
		for resource, want := range map[string]string{
			"machinesets": `(?m)^NAME +DESIRED +CURRENT +READY +AVAILABLE +AGE +$[\s\S]*^windows +3 +3 +3 +3 +`,
			"machines":    `(?m)^NAME +PHASE +TYPE +REGION +ZONE +AGE +$[\s\S]*^` + names[0] + ` +Running +`,
		} {
			if got := l.getTable(resource); !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("kubectl get %s prints\n%s", resource, got)
			}
		}
	})
	//
	t.Run("a node that is drained by hand goes when the set is scaled down, and the others stay", func(t *testing.T) {
		l := lab{t, l.Environment}
		drained, cordoned, last := names[0], names[1], names[2]
		l.cordonByHand(cordoned)
		l.triggerRepair(cordoned)
		l.drainByHand(w, drained)
		l.scaleDown("windows", drained, "machine.openshift.io/delete-machine", cordoned, last)
		l.checkCordoned(cordoned)
		l.drainByHand(w, cordoned)
		l.scaleDown("windows", cordoned, "machine.openshift.io/cluster-api-delete-machine", last)
		w.AwaitPods(t, poolPods)
	})
	held := names[2] // runs all pods
	l.scaleMachineSet("windows", 3)
	names = l.waitUntilReady("windows", 3)
	//
	t.Run("a Machine that is deleted waits for its pods' budget, is left alone, and goes when that allows it", func(t *testing.T) {
		lab{t, l.Environment}.checkDeletionWithBudget(w, held)
		if left := l.waitUntilReady("windows", 3); slices.Contains(left, held) {
			t.Errorf("Machine %s is there again", held)
		}
	})
	//
	t.Run("a Machine that is not to be drained goes though the budget forbids it", func(t *testing.T) {
		l := lab{t, l.Environment}
		w.SetBudget(t, "100%")
		name := l.machineOf(w.AwaitPods(t, poolPods)[0].Spec.NodeName)
		l.changeMachine(name, func(m *machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, "machine.openshift.io/exclude-node-draining", "")
		})
		node, trail := l.nodeOf(name).Name, l.openTrail()
		l.requireNoError(l.DeleteMachine(t.Context(), name))
		l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, name, node) })
		if n := w.Budget(t).Status.DisruptionsAllowed; n != 0 {
			t.Errorf("the budget allows %d pods to be away: this test shows nothing", n)
		}
		if n := trail.evictionCount(w.Namespace); n > 0 {
			t.Errorf("%d evictions were asked for", n)
		}
		l.waitUntilReady("windows", 3)
	})
	//
	t.Run("no Machine and no MachineSet, and no Linux node, was ever written to", func(t *testing.T) {
		trail.lab = lab{t, l.Environment}
		trail.checkNoWrites(l.linuxNodes()...)
	})
}

// checkWorkers checks the labels of the Machines' nodes.
func (l lab) checkWorkers(names []string) {
	l.Helper()
	for _, name := range names {
		node := l.nodeOf(name)
		for label, want := range map[string]string{
			"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/infra": "", "example.com/pool": "web", "node.openshift.io/os_id": "Windows", corev1.LabelOSStable: "windows",
		} {
			if got, ok := node.Labels[label]; !ok || got != want {
				l.Errorf("label %s of node %s is %q (there: %t), want %q", label, node.Name, got, ok, want)
			}
		}
		if _, ok := node.Labels["windowsmachineconfig.openshift.io/byoh"]; ok {
			l.Errorf("node %s is marked as a host that somebody has brought", node.Name)
		}
	}
}

// triggerRepair triggers a repair of an annotation on a Machine's node, like the operator's write at the end of
// each change. It checks that the node stays unschedulable, as set by a user.
func (l lab) triggerRepair(name string) {
	l.Helper()
	node := l.nodeOf(name)
	before := node.DeepCopy()
	delete(node.Annotations, v1alpha1.AnnotationVersion)
	l.requireNoError(l.Client.Patch(l.Context(), node, client.MergeFrom(before)))
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "the operator's version to be on node "+node.Name+" again", node,
			func(ctx context.Context, reader client.Reader) (bool, error) {
				now := &corev1.Node{}
				err := reader.Get(ctx, client.ObjectKeyFromObject(node), now)
				return now.Annotations[v1alpha1.AnnotationVersion] != "" && now.ResourceVersion != before.ResourceVersion, err
			})
	})
	l.checkCordoned(name)
}

// scaleDown marks a Machine with an annotation and scales the MachineSet down by one. The marked Machine must be
// deleted, and the other Machines must be unchanged.
func (l lab) scaleDown(set, marked, annotation string, otherMachines ...string) {
	l.Helper()
	node, before := l.nodeOf(marked).Name, l.machineUIDs(otherMachines)
	l.changeMachine(marked, func(m *machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, annotation, "true") })
	l.scaleMachineSet(set, int32(len(otherMachines)))
	l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, marked, node) })
	left := l.waitUntilReady(set, len(otherMachines))
	if after := l.machineUIDs(left); !slices.Equal(before, after) {
		l.Errorf("scaled down, the set has %v, and is to have %v", left, otherMachines)
	}
}

func (l lab) machineUIDs(names []string) (uids []types.UID) {
	l.Helper()
	for _, name := range names {
		m, err := l.Machine(l.Context(), name)
		l.requireNoError(err)
		uids = append(uids, m.UID)
	}
	slices.Sort(uids)
	return uids
}

// checkDeletionWithBudget deletes a Machine with pods that must all be available. It checks that several attempts to
// drain change nothing, and then allows the evictions.
func (l lab) checkDeletionWithBudget(w *e2e.Workload, name string) {
	l.Helper()
	const attempts = 5
	w.SetBudget(l.T, "100%")
	node, host, trail := l.nodeOf(name), l.MachineHost(name), l.openTrail()
	pods := len(w.PodsOnNode(l.T, node.Name))
	before := connectionCount(host)
	l.requireNoError(l.DeleteMachine(l.Context(), name))
	instance := l.waitForInstance(name, "to be left alone", func(i *v1alpha1.WindowsInstance) bool {
		return i != nil && i.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged &&
			i.Status.Summary == v1alpha1.ReasonMachineDeleting
	})
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "the Machine to be drained in vain", &machine{},
			func(context.Context, client.Reader) (bool, error) {
				return trail.refusedEvictions(w.Namespace) >= attempts*pods, nil
			})
	})
	m, err := l.Machine(l.Context(), name)
	l.requireNoError(err)
	switch now, err := l.MachineInstance(l.Context(), name); {
	case err != nil || now == nil || now.UID != instance.UID:
		l.Errorf("the instance is gone (%v)", err)
	case m == nil || ptr.Deref(m.Status.Phase, "") != machinev1.PhaseDeleting:
		l.Errorf("the Machine is not being deleted: %+v", m)
	case l.nodeOf(name).UID != node.UID || l.MachineHost(name) != host:
		l.Error("node or virtual machine are others")
	}
	if n := len(w.PodsOnNode(l.T, node.Name)); pods == 0 || n != pods {
		l.Errorf("%d of %d pods are left", n, pods)
	}
	for _, e := range trail.writeRequests() {
		if e.Verb == "delete" || e.Verb == "deletecollection" || e.Object.Subresource == "eviction" ||
			e.Object.Name == node.Name {
			l.Errorf("the operator did %s %s %s", e.Verb, e.Resource(), e.Object.Name)
		}
	}

	w.SetBudget(l.T, "4")
	l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, name, node.Name) })
	if n := connectionCount(host) - before; n > 0 {
		l.Errorf("the operator has connected %d times to a host that was being deleted", n)
	}
	w.AwaitPods(l.T, poolPods)
}
