package upgrade

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// A broken cluster setting affects only one node, temporarily, independent of the number of nodes that may be
// unavailable. The next operator process does not apply the setting to another node.
func TestSetting_BadSettingStopsAtFirstNode(t *testing.T) {
	l := start(t, withoutMachines, testenv.Options{Hosts: testenv.Hosts(3), LinuxNodes: 1, Clock: fastClock(t)})
	l.stopExclusively()
	o := l.startOperator(initial)
	l.requireNoError(l.ListHosts(t.Context()))
	l.waitUntilUpgraded(initial, 3, waitTimeout)
	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.MaxUnavailable = ptr.To(intstr.FromInt32(3)) })
	w, before := l.watchAvailability(nil), map[string]int{}
	for _, h := range l.Hosts() {
		before[h.Options.Name] = serviceOperations(h)
	}

	// The kubelet exits with an error: the high threshold must be above the low threshold, which is 80 by default.
	l.requireNoError(l.SetKubeletSettings(t.Context(), map[string]any{"imageGCHighThresholdPercent": 70}))
	canary := ""
	l.waitForAnyInstance("to have failed with the setting", 2*time.Minute, func(i *v1alpha1.WindowsInstance) bool {
		f := i.Status.FailedChange
		if f == nil || !f.RolledBack || f.Cause != v1alpha1.CauseConfiguration || f.ConfigurationDigest == i.Status.ConfigurationDigest {
			return false
		}
		canary = i.Status.NodeRef.Name
		return meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady)
	})
	stopped := func(p *v1alpha1.WindowsDisruptionPolicy) bool {
		return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStopped) && p.Status.Failed == 1 &&
			len(p.Status.Disruptions) == 0
	}
	l.waitForPolicy("to say that it has stopped", stopped)
	if summary := l.getPolicy().Status.Summary; !strings.Contains(summary, "the changed settings of kubelet") {
		t.Errorf("the summary is %q", summary)
	}
	l.requireNoError(o.Stop())
	l.startOperator(initial)
	for _, h := range l.Hosts() {
		if name := h.Options.Name; name != canary {
			message := l.waitForFalse(name, v1alpha1.ConditionUpToDate, v1alpha1.ReasonCanaryFailed)
			if !strings.Contains(message, "the changed settings of kubelet") || !strings.Contains(message, canary) {
				t.Errorf("%s says %q", name, message)
			}
		}
	}
	l.waitForPolicy("to say so still", stopped)
	report := w.checkBudget(1, 0)
	if len(report.Disrupted) != 1 || report.Disrupted[0] != canary {
		t.Errorf("disturbed were %v, and not %s alone", report.Disrupted, canary)
	}
	for _, h := range l.Hosts() {
		if node := l.nodeOf(h.Options.Name); !isInService(node) {
			t.Errorf("node %s: Ready %t, unschedulable %t, taints %v", node.Name, isNodeReady(node), node.Spec.Unschedulable, node.Spec.Taints)
		}
		if n := serviceOperations(h) - before[h.Options.Name]; h.Options.Name != canary && n > 0 {
			t.Errorf("services of host %s were touched: %v", h.Options.Name, lastServices(h, n))
		}
	}
	l.waitForMetric("wmco_disruptions_stopped")
	l.waitForReadsOnly()

	t.Run("the corrected setting goes through", func(t *testing.T) {
		l := l.forSubtest(t)
		l.requireNoError(l.SetKubeletSettings(t.Context(), map[string]any{"imageGCHighThresholdPercent": 70, "imageGCLowThresholdPercent": 60}))
		l.waitForPolicy("to say that all nodes have it", func(p *v1alpha1.WindowsDisruptionPolicy) bool {
			return !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStopped) && p.Status.Failed == 0 &&
				p.Status.Summary == "3 of 3 nodes have version "+releaseByName(t, initial).Version+"." && len(p.Status.Disruptions) == 0
		})
		for _, h := range l.Hosts() {
			if content, err := h.Machine().Drive().ReadFile(`C:\k\kubelet.conf`); !strings.Contains(string(content), `"imageGCLowThresholdPercent": 60`) {
				t.Errorf("host %s does not have it (%v)", h.Options.Name, err)
			}
			l.waitForInstance(h.Options.Name, "to have no failed change", func(i *v1alpha1.WindowsInstance) bool {
				return i.Status.FailedChange == nil && meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionUpToDate)
			})
		}
	})
}
