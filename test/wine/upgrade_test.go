package wine_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// Nodes in service go through a working release, a broken release, and a requested restart, one after the other.
func TestUpgrade_NodesUpgradedRolledBackAndRestarted(t *testing.T) {
	l := newLab(t, "WIN-SEVEN", "WIN-EIGHT")
	o := l.run()
	l.list(l.hosts...)
	former := releaseIn(t, initialVersion, l.PayloadDir())
	next := newRelease(t, "1.1.0-lab", "v1.36.4", "", former)
	bad := newRelease(t, "1.2.0-lab", "v1.37.0", payload.DefectExits)
	for _, h := range l.hosts {
		l.awaitReady(h)
		l.checkRelease(h, former)
	}
	namespace := l.deployWorkload(2)

	//
	t.Run("a release with another kubelet and another agent", func(t *testing.T) {
		l := l.forSubtest(t)
		o = l.checkUpgrade(o, next, namespace)
	})
	t.Run("a release whose kubelet does not come up", func(t *testing.T) {
		l := l.forSubtest(t)
		o = l.checkFailedUpgrade(o, next, bad, namespace)
	})
	//
	t.Run("a restart that an administrator asks for", func(t *testing.T) {
		l := l.forSubtest(t)
		o = l.replaceOperator(o, next)
		l.checkRequestedRestart(next, l.hosts[0], namespace)
	})
}

// checkUpgrade installs a working release: each host is kept, and the programs, including the agent, are replaced in
// place.
func (l *lab) checkUpgrade(o *testenv.Operator, next release, namespace string) *testenv.Operator {
	l.Helper()
	start, a := time.Now(), l.watchAvailability(namespace)
	boots, uids := map[string]int{}, map[string]types.UID{}
	for _, h := range l.hosts {
		boots[h.Name()], uids[h.Name()] = h.Boots(), l.nodeOf(h).UID
	}
	o = l.replaceOperator(o, next)
	for _, h := range l.hosts {
		l.waitForInstance(h, "to be of version "+next.Version, isReadyWithVersion(next.Version))
	}
	l.waitForNoDisruption()
	l.waitForPods(namespace, 2)
	l.Logf("two hosts were upgraded in %s", time.Since(start).Round(time.Second))
	if disturbed := l.checkBudget(a, 1); len(disturbed) != 2 {
		l.Errorf("disturbed were %q, want both nodes", disturbed)
	}

	for _, h := range l.hosts {
		l.checkRelease(h, next)
		n := l.nodeOf(h)
		if n.Status.NodeInfo.KubeletVersion != next.kubeletVersion() || n.Annotations[v1alpha1.AnnotationVersion] != next.Version ||
			n.UID != uids[h.Name()] {
			l.Errorf("node %s (UID %s, was %s) has kubelet %s and version %s",
				n.Name, n.UID, uids[h.Name()], n.Status.NodeInfo.KubeletVersion, n.Annotations[v1alpha1.AnnotationVersion])
		}
		waitUntil(l.T, "one agent lies on "+h.Name(), func() bool { return countAgents(l.T, h) == 1 })
		if got := h.Boots() - boots[h.Name()]; got > 0 {
			l.Errorf("%s was restarted %d times", h.Name(), got)
		}
	}
	return o
}

// checkFailedUpgrade installs a broken release: the first host is rolled back to the previous release, and the other
// host is unchanged.
func (l *lab) checkFailedUpgrade(o *testenv.Operator, former, bad release, namespace string) *testenv.Operator {
	l.Helper()
	start, a := time.Now(), l.watchAvailability(namespace)
	before, seen := map[string]map[string]service{}, map[string]int{}
	for _, h := range l.hosts {
		before[h.Name()], seen[h.Name()] = servicesOf(l.T, h, specOf(l.T, h)), len(h.Journal())
	}
	o = l.replaceOperator(o, bad)
	canary := l.awaitRolledBack(bad.Version)
	other := l.hosts[1-slices.Index(l.hosts, canary)]
	l.waitForInstance(other, "to wait for another release", func(i *v1alpha1.WindowsInstance) bool {
		c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate)
		return testenv.IsReady(i) && c != nil && c.Reason == v1alpha1.ReasonCanaryFailed
	})
	l.waitForNoDisruption()
	l.waitForPods(namespace, 2)
	l.Logf("%s was brought back after %s", canary.Name(), time.Since(start).Round(time.Second))
	if disturbed := l.checkBudget(a, 1); !slices.Equal(disturbed, []string{nodeName(canary)}) {
		l.Errorf("disturbed were %q, want %s alone", disturbed, nodeName(canary))
	}
	for _, h := range l.hosts {
		l.checkRelease(h, former)
		if n := l.nodeOf(h); n.Status.NodeInfo.KubeletVersion != former.kubeletVersion() ||
			n.Annotations[v1alpha1.AnnotationVersion] != former.Version {
			l.Errorf("node %s has kubelet %s and version %s", n.Name, n.Status.NodeInfo.KubeletVersion,
				n.Annotations[v1alpha1.AnnotationVersion])
		}
	}
	if now := servicesOf(l.T, other, specOf(l.T, other)); !maps.Equal(now, before[other.Name()]) {
		l.Errorf("the services of %s are %v, were %v", other.Name(), now, before[other.Name()])
	}
	for _, line := range agentCommands(other, seen[other.Name()]) {
		for _, changes := range []agentapi.Name{agentapi.Apply, agentapi.Rollback, agentapi.Commit, agentapi.Reboot, agentapi.Remove} {
			if strings.Contains(line, nodespec.AgentProgram+" "+string(changes)) {
				l.Errorf("%s was changed by %s", other.Name(), line)
			}
		}
	}
	return o
}

// checkRequestedRestart requests a restart: the host is restarted once, and nothing is reconfigured.
func (l *lab) checkRequestedRestart(present release, h *wine.Host, namespace string) {
	l.Helper()
	for _, h := range l.hosts { // The operator of the current release agrees.
		l.waitForInstance(h, "to be up to date", func(i *v1alpha1.WindowsInstance) bool {
			return testenv.IsReady(i) && i.Status.FailedChange == nil && meta.IsStatusConditionTrue(i.Status.Conditions,
				v1alpha1.ConditionUpToDate)
		})
	}
	start, a, seen, boots := time.Now(), l.watchAvailability(namespace), len(h.Journal()), h.Boots()
	node := l.nodeOf(h)
	boot := node.Status.NodeInfo.BootID
	patch := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationRebootRequired+`":"patches"}}}`))
	requireNoError(l.T, l.Client.Patch(l.Context(), node, patch))

	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	requireNoError(l.T, l.WaitFor(ctx, "node "+node.Name+" to be in service again", &corev1.Node{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			n := &corev1.Node{}
			err := reader.Get(ctx, client.ObjectKeyFromObject(node), n)
			_, rebootRequired := n.Annotations[v1alpha1.AnnotationRebootRequired]
			return !rebootRequired && n.Status.NodeInfo.BootID != boot && isInService(n), err
		}))
	l.awaitReady(h)
	l.waitForNoDisruption()
	l.waitForPods(namespace, 2)
	l.Logf("%s was restarted in %s", h.Name(), time.Since(start).Round(time.Second))
	if disturbed := l.checkBudget(a, 1); !slices.Equal(disturbed, []string{node.Name}) {
		l.Errorf("disturbed were %q, want %s alone", disturbed, node.Name)
	}
	if got := h.Boots() - boots; got != 1 {
		l.Errorf("%d restarts, want 1", got)
	}
	commands := slices.DeleteFunc(agentCommands(h, seen), func(line string) bool {
		return !strings.Contains(line, nodespec.AgentProgram+" "+string(agentapi.Reboot)+" ")
	})
	if len(commands) != 1 {
		l.Errorf("the agent was asked to restart the host by %q", commands)
	}
	l.checkRelease(h, present)
}

// forSubtest returns the lab for a subtest.
func (l *lab) forSubtest(t *testing.T) *lab {
	part := *l
	part.T = t
	return &part
}

// hostOfNode returns the lab's host with a node of this name, or nil.
func (l *lab) hostOfNode(node string) *wine.Host {
	for _, h := range l.hosts {
		if nodeName(h) == node {
			return h
		}
	}
	return nil
}

// isInService reports whether a node is schedulable.
func isInService(n *corev1.Node) bool {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return ready && !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == v1alpha1.TaintNotReady
	})
}

// checkBudget checks that at most one node was unavailable at a time and that enough pods were healthy. It returns the
// nodes that were unavailable, in order.
func (l *lab) checkBudget(a *testenv.Availability, healthy int) []string {
	l.Helper()
	report, err := a.Report(l.Context())
	requireNoError(l.T, err)
	if report.MaxUnavailable > 1 || report.MaxDisruptions != 1 || report.MinHealthy < healthy || len(report.Ungated) > 0 {
		l.Errorf("%d nodes and all but %d pods were unavailable at once, %d were disturbed at once, without the gate: %q:\n%s", report.MaxUnavailable,
			report.MinHealthy, report.MaxDisruptions, report.Ungated, strings.Join(report.Timeline, "\n"))
	}
	return report.Disrupted
}

// waitForNoDisruption waits until no node is disrupted any more.
func (l *lab) waitForNoDisruption() {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	key := client.ObjectKey{Namespace: l.Namespace(), Name: v1alpha1.DisruptionPolicyName}
	requireNoError(l.T, l.WaitFor(ctx, "nothing to be disturbed", &v1alpha1.WindowsDisruptionPolicy{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			p := &v1alpha1.WindowsDisruptionPolicy{}
			err := reader.Get(ctx, key, p)
			return err == nil && len(p.Status.Disruptions) == 0, err
		}))
}

// awaitRolledBack waits until the change of a host to a version has failed and was rolled back, and returns the
// host.
func (l *lab) awaitRolledBack(version string) (canary *wine.Host) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	requireNoError(l.T, l.WaitFor(ctx, "a host to be brought back", &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			var list v1alpha1.WindowsInstanceList
			err := reader.List(ctx, &list, client.InNamespace(l.Namespace()))
			for i := range list.Items {
				instance := &list.Items[i]
				c := meta.FindStatusCondition(instance.Status.Conditions, v1alpha1.ConditionUpToDate)
				f := instance.Status.FailedChange
				if testenv.IsReady(instance) && f != nil && f.Version == version && f.RolledBack && c != nil &&
					c.Reason == v1alpha1.ReasonChangeFailed {
					canary = l.hostOfNode(instance.Status.NodeRef.Name)
				}
			}
			return canary != nil, err
		}))
	return canary
}
