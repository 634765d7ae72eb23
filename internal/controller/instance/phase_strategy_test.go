package instance

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// newUpgradeTrial returns a trial with a node that another version of the operator has configured. changes is true if
// the desired configuration of the host differs.
func newUpgradeTrial(t *testing.T, strategy v1alpha1.UpgradeStrategy, changes bool) *trial {
	t.Helper()
	x := newTrial(t)
	instance := machineInstance()
	instance.Spec.UpgradeStrategy = strategy
	x.asNode(instance, x.key.Hash())
	x.Version = "2.0.0"
	if changes {
		x.facts.Kubelet.ClusterDomain = "other.local"
	}
	return x
}

//
func TestStrategy_HostToBeReplacedNotChanged(t *testing.T) {
	x := newUpgradeTrial(t, v1alpha1.UpgradeReplace, true)
	node := x.getNode()
	instance, _ := x.reconcile()
	condition := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonReplacementPending)
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if !strings.Contains(condition.Message, machine) || instance.Status.Summary != v1alpha1.ReasonReplacementPending {
		t.Errorf("summary %q, message %q", instance.Status.Summary, condition.Message)
	}
	if instance.Status.ReplacementVersion != x.Version {
		t.Errorf("for %q, not %q", instance.Status.ReplacementVersion, x.Version)
	}
	if x.countDials() != 0 || x.getNode().ResourceVersion != node.ResourceVersion {
		t.Errorf("%d connections; Node %s after %s", x.countDials(), x.getNode().ResourceVersion, node.ResourceVersion)
	}
	if again, _ := x.reconcile(); again.ResourceVersion != instance.ResourceVersion {
		t.Error("the next pass writes the same again")
	}
	if events := x.popEvents(); len(events) > 0 {
		t.Errorf("to wait is nothing to warn of: %v", events)
	}
	x.Version = "1.2.3" // the version that configured the node
	if instance, _ = x.reconcile(); instance.Status.ReplacementVersion != "" {
		t.Errorf("it still awaits %s", instance.Status.ReplacementVersion)
	}
}

// An upgrade that does not disrupt pods, such as the upgrade of the agent, replaces no Machine. R-146
func TestStrategy_UndisruptiveUpgradeInPlace(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*trial)
		replaced bool
	}{
		"files that no service restarts for": {func(x *trial) { x.facts.KubeletClientCA += x.facts.KubeletClientCA }, false},
		"arguments of the kubelet":           {func(x *trial) { x.facts.Kubelet.ClusterDomain = "other.local" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newUpgradeTrial(t, v1alpha1.UpgradeReplace, false)
			digest := x.newDependencies().specs.ConfigurationDigest(*x.facts)
			x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) { s.ConfigurationDigest = digest })
			c.change(x)
			instance, _ := x.reconcile()
			if replaced := instance.Status.ReplacementVersion != ""; replaced != c.replaced || (x.countDials() == 0) != c.replaced {
				t.Errorf("replaced %v, %d connections, summary %s", replaced, x.countDials(), instance.Status.Summary)
			}
		})
	}
}

// D-1
func TestStrategy_UnchangedHostUpdatesAnnotationOnly(t *testing.T) {
	for _, strategy := range []v1alpha1.UpgradeStrategy{v1alpha1.UpgradeReplace, v1alpha1.UpgradeInPlace} {
		t.Run(string(strategy), func(t *testing.T) {
			x := newUpgradeTrial(t, strategy, false)
			instance, _ := x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			if version := x.getNode().Annotations[v1alpha1.AnnotationVersion]; version != "2.0.0" ||
				instance.Status.Version != "2.0.0" || x.countDials() != 0 {
				t.Errorf("the Node says %s, the instance %s, after %d connections", version, instance.Status.Version, x.countDials())
			}
		})
	}
}

// failedWith records a failed change of the instance that was rolled back.
func (x *trial) failedWith(instance *v1alpha1.WindowsInstance, reason string,
	retryAfter time.Duration) *v1alpha1.WindowsInstance {
	x.t.Helper()
	s := x.newScope(instance.DeepCopy())
	s.Cluster = *x.facts
	spec, err := x.newDependencies().specs.Build(s, nodeWithSubnet("10.132.0.0/24"))
	if err != nil {
		x.t.Fatal(err)
	}
	instance.Status.FailedChange = &v1alpha1.FailedChange{
		Cause: v1alpha1.CauseUpgrade, Version: x.Version, SpecDigest: spec.Digest(),
		PreviousDigest: instance.Status.SpecDigest,
		Reason:         reason, DrainTimedOut: reason == v1alpha1.ReasonDrainTimedOut, Message: "kubelet.exe ends at once",
		Time: metav1.NewTime(noon), Attempts: 1, RolledBack: true,
		RetryAfter: ptr.To(metav1.NewTime(noon.Add(retryAfter))),
	}
	if err := x.Client.Status().Update(x.t.Context(), instance); err != nil {
		x.t.Fatal(err)
	}
	return instance
}

func TestStrategy_NodeStaysReadyAfterFailedChange(t *testing.T) {
	for reason, shown := range map[string]string{
		v1alpha1.ReasonChecksFailed: v1alpha1.ReasonChangeFailed, v1alpha1.ReasonDrainTimedOut: v1alpha1.ReasonDrainTimedOut,
	} {
		t.Run(shown, func(t *testing.T) {
			x := newUpgradeTrial(t, v1alpha1.UpgradeInPlace, true)
			x.failedWith(x.getInstance(), reason, 30*time.Minute)
			instance, after := x.reconcile()
			condition := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, shown)
			expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			if x.countDials() != 0 || after != 30*time.Minute || !strings.Contains(condition.Message, "kubelet.exe") ||
				!strings.Contains(instance.Status.NextAction, "annotate windowsinstance "+machine) {
				t.Errorf("%d connections, next look in %s: %s %s", x.countDials(), after, condition.Message, instance.Status.NextAction)
			}
		})
	}
}

func TestStrategy_RetriesDueOrRequestedChange(t *testing.T) {
	for name, change := range map[string]func(*trial){
		"its time has come":          func(x *trial) { x.clock.Step(31 * time.Minute) },
		"another version":            func(x *trial) { x.Version = "2.0.1" },
		"another configuration":      func(x *trial) { x.facts.Kubelet.ClusterDomain = "third.local" },
		"an administrator wants it":  func(x *trial) { x.annotateInstance(v1alpha1.AnnotationRetry, "now") },
		"the node does not work now": func(x *trial) { x.breakNode() },
	} {
		t.Run(name, func(t *testing.T) {
			x := newUpgradeTrial(t, v1alpha1.UpgradeInPlace, true)
			x.failedWith(x.getInstance(), v1alpha1.ReasonChecksFailed, 30*time.Minute)
			change(x)
			instance, _ := x.reconcile()
			if x.countDials() == 0 {
				t.Errorf("the host was not tried: %s", instance.Status.Summary)
			}
			if _, requested := instance.Annotations[v1alpha1.AnnotationRetry]; requested {
				t.Error("the annotation stays")
			}
			if another := strings.HasPrefix(name, "another"); another && instance.Status.FailedChange != nil {
				t.Error("what is not wanted any more is still said to have failed")
			}
		})
	}
}

// A node that is unavailable for a moment must not get a failed change at once, without the disruption policy.
func TestStrategy_NewVersionIsNoRepair(t *testing.T) {
	x := newUpgradeTrial(t, v1alpha1.UpgradeInPlace, true)
	x.failedWith(x.getInstance(), v1alpha1.ReasonChecksFailed, 30*time.Minute)
	x.breakNodeSince(noon.Add(-time.Second), noon.Add(-time.Hour))
	node := x.getNode()
	instance, _ := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady)
	if x.countDials() != 0 || instance.Status.FailedChange == nil {
		t.Errorf("%d connections, failure %+v", x.countDials(), instance.Status.FailedChange)
	}
	s := x.newScope(x.getInstance())
	if cause := x.newDependencies().changes.CauseOf(s, node); cause != v1alpha1.CauseUpgrade {
		t.Errorf("its host is as it was, and is to be changed by %s", cause)
	}
	s.Instance.Status.SpecDigest = ""
	if cause := x.newDependencies().changes.CauseOf(s, node); cause != v1alpha1.CauseRepair {
		t.Errorf("its host is half changed, and is to be changed by %s", cause)
	}
}

// A node that is unavailable for a moment must not get another kubelet without the disruption policy.
func TestStrategy_NewKubernetesIsNoRepair(t *testing.T) {
	x := newTrial(t)
	x.asNode(machineInstance(), x.key.Hash())
	x.breakNode()
	s := x.newScope(x.getInstance())
	s.Cluster = *x.facts
	for kubernetes, want := range map[string]v1alpha1.DisruptionCause{
		"": v1alpha1.CauseRepair, "1.36": v1alpha1.CauseRepair, "1.35": v1alpha1.CauseConfiguration,
	} {
		s.Instance.Status.Kubernetes = kubernetes
		if cause := x.newDependencies().changes.CauseOf(s, x.getNode()); cause != want {
			t.Errorf("a node with Kubernetes %q is changed by %s, want %s", kubernetes, cause, want)
		}
	}
	s.Instance.Status.Kubernetes, s.Instance.Status.SpecDigest = "1.35", ""
	if cause := x.newDependencies().changes.CauseOf(s, x.getNode()); cause != v1alpha1.CauseRepair {
		t.Errorf("a changed host is changed by %s", cause)
	}
}

func TestReboot_WaitsForSlotWithoutConnection(t *testing.T) {
	x := newTrial(t)
	x.asNode(machineInstance(), x.key.Hash())
	node := x.getNode()
	node.Annotations[v1alpha1.AnnotationRebootRequired] = ""
	if err := x.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	gate := openGate()
	gate.refuseAll(v1alpha1.ReasonMaxUnavailableReached)
	x.Gate = gate
	instance, after := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonMaxUnavailableReached)
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if x.countDials() != 0 || after != time.Minute || len(gate.requests) != 1 || gate.requests[0].Cause != v1alpha1.CauseReboot ||
		x.getNode().Spec.Unschedulable {
		t.Errorf("%d connections, next look in %s, asked %v", x.countDials(), after, gate.requests)
	}
	gate.closed = false
	x.reconcile()
	if x.countDials() == 0 {
		t.Error("its turn has come, and nothing is done")
	}
	if x.getNode().Spec.Unschedulable || len(gate.held) > 0 {
		t.Errorf("the agent has not answered, and yet: unschedulable %t, held %v", x.getNode().Spec.Unschedulable, gate.held)
	}
}
