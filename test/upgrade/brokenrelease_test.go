package upgrade

import (
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// stopping is held by a test in which an upgrade stops: the metric for a stopped upgrade is shared by all operators
// of this process.
var stopping sync.Mutex

// stopExclusively prevents other tests from stopping an upgrade until this test has ended.
func (l lab) stopExclusively() {
	stopping.Lock()
	l.Cleanup(stopping.Unlock)
}

// A broken release affects only one node, temporarily.
func TestUpgrade_BadReleaseStopsAtFirstNode(t *testing.T) {
	l := start(t, withoutMachines, testenv.Options{Hosts: testenv.Hosts(3), LinuxNodes: 1, Clock: fastClock(t)})
	l.stopExclusively()
	o := l.startOperator(initial)
	l.requireNoError(l.ListHosts(t.Context()))
	l.waitUntilUpgraded(initial, 3, waitTimeout)

	for _, c := range []struct{ name, release, base string }{
		{"whose kubelet ends at once", exits, initial},
		{"whose kubelet is never healthy", unhealthy, initial},
		{"whose Node is never Ready", notReady, initial},
	} {
		ok := t.Run("a release "+c.name, func(t *testing.T) {
			l := l.forSubtest(t)
			w := l.watchAvailability(nil)
			before := map[string]int{}
			for _, h := range l.Hosts() {
				before[h.Options.Name] = serviceOperations(h)
			}
			o = l.upgradeOperator(o, c.release)
			canary := l.waitForFailedNode(c.release)
			l.waitForPolicy("to say that it has stopped", func(p *v1alpha1.WindowsDisruptionPolicy) bool {
				return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStopped) && p.Status.Failed == 1 && len(p.Status.Disruptions) == 0
			})
			for _, h := range l.Hosts() {
				if name := h.Options.Name; name != canary {
					l.waitForFalse(name, v1alpha1.ConditionUpToDate, v1alpha1.ReasonCanaryFailed)
				}
			}
			report := w.checkBudget(1, 0)
			if len(report.Disrupted) != 1 || report.Disrupted[0] != canary {
				t.Errorf("disturbed were %v, and not %s alone", report.Disrupted, canary)
			}
			for _, h := range l.Hosts() {
				node := l.nodeOf(h.Options.Name)
				if !isInService(node) || node.Annotations[v1alpha1.AnnotationVersion] != releaseByName(t, c.base).Version {
					t.Errorf("node %s: Ready %t, unschedulable %t, taints %v, of version %s",
						node.Name, isNodeReady(node), node.Spec.Unschedulable, node.Spec.Taints, node.Annotations[v1alpha1.AnnotationVersion])
				}
				if node.Status.NodeInfo.KubeletVersion != "v1.36.3" {
					t.Errorf("node %s runs kubelet %s", node.Name, node.Status.NodeInfo.KubeletVersion)
				}
				if n := serviceOperations(h) - before[h.Options.Name]; h.Options.Name != canary && n > 0 {
					t.Errorf("services of host %s were touched: %v", h.Options.Name, lastServices(h, n))
				}
			}
			if t.Failed() {
				t.Logf("what happened:\n%s", strings.Join(w.readReport().Timeline, "\n"))
			}
			l.waitForMetric("wmco_disruptions_stopped")
			l.waitForReadsOnly()
		})
		if !ok {
			return
		}
	}
	t.Run("the release that mends it goes through", func(t *testing.T) {
		l := l.forSubtest(t)
		w := l.watchAvailability(nil)
		l.upgradeOperator(o, repaired)
		l.waitUntilUpgraded(repaired, 3, 2*time.Minute)
		w.checkBudget(1, 0)
		for _, h := range l.Hosts() {
			l.waitForInstance(h.Options.Name, "to have no failed change", func(i *v1alpha1.WindowsInstance) bool {
				return i.Status.FailedChange == nil && meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionUpToDate)
			})
		}
		l.waitForPolicy("to say that it goes on", func(p *v1alpha1.WindowsDisruptionPolicy) bool {
			return !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStopped) && p.Status.Failed == 0 && p.Status.Updated == 3
		})
	})
}

// waitForFailedNode waits until the change of a node to a release has failed and was rolled back, and returns the
// host's name.
func (l lab) waitForFailedNode(name string) (canary string) {
	l.Helper()
	version := releaseByName(l.T, name).Version
	l.waitForAnyInstance("to have failed with "+version, 2*time.Minute, func(i *v1alpha1.WindowsInstance) bool {
		c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate)
		f := i.Status.FailedChange
		if f == nil || f.Version != version || !f.RolledBack || c == nil || c.Status != metav1.ConditionFalse ||
			c.Reason != v1alpha1.ReasonChangeFailed {
			return false
		}
		canary = i.Status.NodeRef.Name
		return meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady)
	})
	return canary
}

// waitForMetric waits until a metric of the operator is not zero. The test has called stopExclusively.
func (l lab) waitForMetric(name string) {
	l.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(waitTimeout); gaugeValue(l.T, name) == 0; <-ticker.C {
		if time.Now().After(deadline) {
			l.Errorf("metric %s is 0", name)
			return
		}
	}
}

// gaugeValue returns the value of a metric without labels.
func gaugeValue(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// With replacement, the first Machine is the canary. The other Machines are unchanged.
func TestUpgrade_BadReleaseReplacesOneMachine(t *testing.T) {
	l := start(t, withMachines, testenv.Options{LinuxNodes: 1, Clock: fastClock(t)})
	l.stopExclusively()
	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
		p.FailureDeadline = &metav1.Duration{Duration: 5 * time.Minute}
	})
	o := l.startOperator(initial)
	f := l.newReadyFleet(1, 3, 3)
	before, w := l.machineNames(), l.watchAvailability(f.workload)
	o = l.upgradeOperator(o, exits)
	l.waitForPolicy("to say that it has stopped", func(p *v1alpha1.WindowsDisruptionPolicy) bool {
		return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStopped)
	})
	w.checkBudget(1, 2)
	count := 0
	for _, name := range l.machineNames() {
		for _, old := range before {
			if name == old {
				count++
			}
		}
	}
	if count != 2 {
		t.Errorf("%d of 3 Machines are still there, and 2 should be", count)
	}
	t.Run("the release that mends it goes through", func(t *testing.T) {
		l := l.forSubtest(t)
		l.upgradeOperator(o, repaired)
		l.waitUntilUpgraded(repaired, 3, 2*time.Minute)
		f.waitForPods(3)
		w.checkBudget(1, 2)
	})
}
