package disruption_test

import (
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// Current and desired settings of nodes.
const (
	settingsBefore    = "containerd=0c kubelet=01"
	settingsAfter     = "containerd=0c kubelet=02"
	settingsCorrected = "containerd=0c kubelet=03"
)

// updateStatus changes the status of an instance.
func (w *world) updateStatus(instance *v1alpha1.WindowsInstance, change func(*v1alpha1.WindowsInstanceStatus)) {
	w.t.Helper()
	w.requireNoError(w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(instance), instance))
	change(&instance.Status)
	w.requireNoError(w.admin.Status().Update(w.t.Context(), instance))
}

// createConfiguredHost creates a listed host with the settings.
func (w *world) createConfiguredHost(name, settings string) *v1alpha1.WindowsInstance {
	w.t.Helper()
	instance := w.createHost(name, version)
	w.updateStatus(instance, func(s *v1alpha1.WindowsInstanceStatus) { s.ConfigurationDigest = settings })
	return instance
}

// startConfigured starts an operator with the desired settings of all nodes.
func (w *world) startConfigured(name, settings string) *process {
	w.t.Helper()
	p := w.start(name, false)
	p.configuration = settings
	return p
}

func TestCanary_FailedSettingsNotRolledOut(t *testing.T) {
	w := newWorld(t).forSubtest(t)
	w.editPolicy(func(s *v1alpha1.WindowsDisruptionPolicySpec) { s.MaxUnavailable = ptr.To(intstr.FromInt32(3)) })
	first, second, third := w.createConfiguredHost("byoh-1", settingsBefore), w.createConfiguredHost("byoh-2", settingsBefore), w.createConfiguredHost("byoh-3", settingsBefore)
	one := w.startConfigured("one", settingsAfter)
	refused := func(p *process, instance *v1alpha1.WindowsInstance, reason string) {
		t.Helper()
		if decision := p.acquireSlot(instance, v1alpha1.CauseConfiguration); decision.Allowed || decision.Reason != reason ||
			!strings.Contains(decision.Message, "the changed settings of kubelet") {
			t.Errorf("%s: %+v, want it refused for %s", instance.Name, decision, reason)
		}
	}
	if decision := one.acquireSlot(first, v1alpha1.CauseConfiguration); !decision.Allowed {
		t.Fatalf("%+v", decision)
	}
	if entry := w.getPolicy().Status.Disruptions[0]; entry.ConfigurationDigest != settingsAfter {
		t.Errorf("it is brought to %q", entry.ConfigurationDigest)
	}
	if events := one.eventsWithReason("DisruptionStarted"); len(events) != 1 || !strings.Contains(events[0], "the changed settings of kubelet") {
		t.Errorf("events %q", events)
	}
	refused(one, second, v1alpha1.ReasonCanarySoaking)
	refused(w.startConfigured("two", settingsAfter), third, v1alpha1.ReasonCanarySoaking)

	w.updateStatus(first, func(s *v1alpha1.WindowsInstanceStatus) {
		s.FailedChange = &v1alpha1.FailedChange{Cause: v1alpha1.CauseConfiguration, Version: version, ConfigurationDigest: settingsAfter,
			Reason: v1alpha1.ReasonChecksFailed, Message: "the kubelet does not come up", Time: metav1.NewTime(w.clock.Now()),
			Attempts: 1, RolledBack: true}
	})
	one.releaseSlot(first)
	one.reconcile()
	if c := w.policyCondition(v1alpha1.ConditionStopped); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonCanaryFailed ||
		!strings.Contains(c.Message, "the kubelet does not come up") {
		t.Errorf("%+v", c)
	}
	if c := w.policyCondition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	if events := one.eventsWithReason("DisruptionsStopped"); len(events) != 1 {
		t.Errorf("events %q", events)
	}
	if metricValue(t, "wmco_disruptions_stopped") != 1 || metricLabel(t, "wmco_disruptions_stopped") != v1alpha1.ReasonCanaryFailed {
		t.Error("the metric does not tell of it")
	}
	refused(one, second, v1alpha1.ReasonCanaryFailed)
	restarted := w.startConfigured("after a restart", settingsAfter)
	restarted.reconcile()
	refused(restarted, third, v1alpha1.ReasonCanaryFailed)
	w.reportNode(third.Name, false, "v1.35.1")
	if decision := restarted.acquireSlot(third, v1alpha1.CauseRepair); !decision.Allowed {
		t.Errorf("a repair: %+v", decision)
	}
	restarted.releaseSlot(third)
	w.reportNode(third.Name, true, "v1.35.1")

	restarted.configuration = settingsCorrected
	if decision := restarted.acquireSlot(second, v1alpha1.CauseConfiguration); !decision.Allowed {
		t.Fatalf("the corrected settings: %+v", decision)
	}
	w.updateStatus(second, func(s *v1alpha1.WindowsInstanceStatus) { s.ConfigurationDigest = settingsCorrected })
	restarted.releaseSlot(second)
	restarted.reconcile()
	if c := w.policyCondition(v1alpha1.ConditionStopped); c.Status != metav1.ConditionFalse {
		t.Errorf("%+v", c)
	}
	if decision := restarted.acquireSlot(third, v1alpha1.CauseConfiguration); !decision.Allowed {
		t.Errorf("the next node: %+v", decision)
	}
}

// The settings change again while a host is being changed. Nodes that wait for the first node with the new settings
// must observe this.
func TestCanary_StatusHasTargetSettingsOfNode(t *testing.T) {
	w := newWorld(t).forSubtest(t)
	w.editPolicy(func(s *v1alpha1.WindowsDisruptionPolicySpec) { s.MaxUnavailable = ptr.To(intstr.FromInt32(3)) })
	first, second := w.createConfiguredHost("byoh-1", settingsBefore), w.createConfiguredHost("byoh-2", settingsBefore)
	p := w.startConfigured("one", settingsAfter)
	p.acquireSlot(first, v1alpha1.CauseConfiguration)
	begun := w.getPolicy().Status.Disruptions[0]
	p.configuration = settingsCorrected
	for range 2 {
		decision, err := p.Acquire(t.Context(), disruptionpolicy.Request{Instance: first.Name, UID: first.UID,
			Cause: v1alpha1.CauseRepair, Version: version, HostChanged: true})
		if err != nil || !decision.Allowed {
			t.Fatalf("%+v (%v)", decision, err)
		}
	}
	begun.ConfigurationDigest = settingsCorrected
	if list := w.getPolicy().Status.Disruptions; !slices.Equal(list, []v1alpha1.Disruption{begun}) {
		t.Errorf("listed are %+v, want %+v", list, begun)
	}
	if decision := p.acquireSlot(second, v1alpha1.CauseConfiguration); decision.Reason != v1alpha1.ReasonCanarySoaking {
		t.Errorf("%+v", decision)
	}
	// A recreated policy reports it too.
	w.requireNoError(w.admin.Delete(t.Context(), w.getPolicy()))
	w.patchNode(first.Name, func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationCordoned] = "2026-11-21T12:00:00Z" })
	other := w.startConfigured("another", settingsCorrected)
	other.reconcile()
	if list := w.getPolicy().Status.Disruptions; len(list) != 1 || list[0].ConfigurationDigest != settingsCorrected {
		t.Errorf("listed are %+v", list)
	}
}

// metricLabel returns the value of the label of a metric with one series.
func metricLabel(t *testing.T, name string) string {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
	if i < 0 || len(families[i].GetMetric()) != 1 {
		t.Fatalf("%s has not one series", name)
	}
	return families[i].GetMetric()[0].GetLabel()[0].GetValue()
}
