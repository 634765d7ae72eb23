package machines

import (
	"context"
	"errors"
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

// A disruption budget blocks the replacement of a Machine, and the platform has no capacity for another virtual
// machine before the pods are gone. After failureDeadline, other MachineSets are no longer blocked, while the
// affected MachineSet waits. All replacements continue once the budget allows it. R-161
func TestReplacement_BlockedByPodsUnblocksSetsAfterDeadline(t *testing.T) {
	l := start(t, "AWS", testenv.Options{Cluster: parallelCluster(t, "AWS"), LinuxNodes: 1, Clock: e2e.FastClock(t)})
	l.startOperator()
	l.createMachineSet("windows-a", 2, testenv.MachineSetOptions{})
	l.createMachineSet("windows-b", 1, testenv.MachineSetOptions{})
	a, b := l.waitUntilReady("windows-a", 2), l.waitUntilReady("windows-b", 1)[0]
	held, next := a[0], a[1]
	node, nodeOfB := l.nodeOf(held), l.nodeOf(b).Name
	w := e2e.Deploy(t, l.Environment, 2, map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]}, "100%")
	releaseQuota := l.InjectVM(testenv.VMFault{Machine: "windows-a-*",
		CreateError: errors.New("VcpuLimitExceeded: the quota is used up")})
	defer releaseQuota()

	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.Paused = true })
	l.requireNoError(l.RotateKey(t.Context(), false))
	for _, name := range []string{held, next, b} {
		l.waitForInstance(name, "to be refused by its host", func(i *v1alpha1.WindowsInstance) bool {
			return slices.ContainsFunc(i.Status.Conditions, func(c metav1.Condition) bool {
				return c.Reason == "AuthenticationFailed"
			})
		})
	}
	trail, remaining := l.openTrail(), l.machineUIDs([]string{next})
	// The Machine with the blocked pods comes first: the other Machines may not be replaced before.
	l.pauseInstance(next, true)
	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
		p.Paused, p.FailureDeadline = false, &metav1.Duration{Duration: time.Hour}
		p.Pools = []v1alpha1.DisruptionPool{{Name: "MachineSet/windows-b", Paused: true}}
	})
	l.inTime(func(ctx context.Context) error {
		return l.WaitForMachines(ctx, "windows-a", "Machine "+held+" to be deleted", func(machines []machine) bool {
			return slices.ContainsFunc(machines, func(m machine) bool { return m.Name == held && m.DeletionTimestamp != nil })
		})
	})
	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.Pools = nil })
	l.pauseInstance(next, false)

	l.waitForEvent("another MachineSet waits for it", "ReplacementPending", b,
		node.Name+" (MachineSet/windows-a) is being replaced")
	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
		p.FailureDeadline = &metav1.Duration{Duration: time.Minute}
	})
	l.waitForEvent("after failureDeadline it has failed, and why", "DisruptionFailed", v1alpha1.DisruptionPolicyName,
		"Machine "+held+" is still being deleted", w.Namespace+"/web-", "disruption budget")
	l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, b, nodeOfB) })
	l.waitUntilReady("windows-b", 1)
	l.waitForEvent("its own MachineSet waits", "ReplacementPending", next, "Machine "+held+" is still being deleted")
	if trail.refusedEvictions(w.Namespace) == 0 || len(w.PodsOnNode(t, node.Name)) != 2 || l.nodeOf(held).UID != node.UID {
		t.Error("the pods, or their node, are gone")
	}
	if now := l.machineUIDs([]string{next}); !slices.Equal(now, remaining) {
		t.Error("the other Machine of the set is another one")
	}

	w.SetBudget(t, "0")
	releaseQuota()
	l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, held, node.Name) })
	l.waitForKeyHash(3)
	if left := l.waitUntilReady("windows-a", 2); slices.Contains(left, next) {
		t.Errorf("Machine %s was not replaced", next)
	}
	for _, name := range []string{held, next, b} {
		if n := trail.deletionCount(name); n != 1 {
			t.Errorf("the operator has deleted Machine %s %d times", name, n)
		}
	}
}

// pauseInstance pauses or resumes the instance of a Machine.
func (l lab) pauseInstance(machine string, paused bool) {
	l.Helper()
	instance, err := l.MachineInstance(l.Context(), machine)
	l.requireNoError(err)
	after := instance.DeepCopy()
	after.Spec.Paused = paused
	l.requireNoError(l.Client.Patch(l.Context(), after, client.MergeFrom(instance)))
}

// waitForEvent waits for an operator event about the named object with all the parts in the message.
func (l lab) waitForEvent(what, reason, about string, parts ...string) {
	l.Helper()
	matches := func(e corev1.Event) bool {
		silent := func(part string) bool { return !strings.Contains(e.Message, part) }
		return e.Reason == reason && e.InvolvedObject.Name == about && !slices.ContainsFunc(parts, silent)
	}
	var events corev1.EventList
	defer func() {
		for _, e := range events.Items {
			if l.Failed() && e.InvolvedObject.Name == about {
				l.Logf("%s %s: %s", e.EventTime.Format(time.TimeOnly), e.Reason, e.Message)
			}
		}
	}()
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "an event: "+what, &corev1.Event{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				err := reader.List(ctx, &events, client.InNamespace(l.Namespace()))
				return slices.ContainsFunc(events.Items, matches), err
			})
	})
}

// deletionCount returns the number of times that the operator has deleted a Machine.
func (a *trail) deletionCount(machine string) (n int) {
	a.Helper()
	for _, e := range a.writeRequests() {
		if e.Verb == "delete" && e.Resource() == "machines" && e.Object.Name == machine && e.Response.Code == 200 {
			n++
		}
	}
	return n
}
