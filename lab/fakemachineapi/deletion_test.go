package fakemachineapi

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newRunningMachine creates a Machine with a Node.
func (f *fixture) newRunningMachine(name string, edit ...func(*machinev1.Machine)) (*machinev1.Machine, *corev1.Node) {
	f.t.Helper()
	f.newMachine(name, edit...)
	node := f.joinNode(f.awaitPhase(name, machinev1.PhaseProvisioned), corev1.ConditionTrue)
	return f.awaitPhase(name, machinev1.PhaseRunning), node
}

// newRunningPod creates a pod that runs on a Node without a kubelet, so that the pod never ends.
func (f *fixture) newRunningPod(name string, node *corev1.Node, edit ...func(*corev1.Pod)) *corev1.Pod {
	f.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node.Name, AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: "c", Image: "example.com/app"}},
			Volumes: []corev1.Volume{{Name: "scratch",
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	for _, e := range edit {
		e(pod)
	}
	f.pollUntil("the pod "+name+" is made", func(ctx context.Context) (bool, error) {
		err := f.Create(ctx, pod.DeepCopy())
		if apierrors.IsForbidden(err) { // The service account does not exist yet.
			return false, nil
		}
		return err == nil, err
	})
	f.requireNoError(f.Get(f.t.Context(), client.ObjectKeyFromObject(pod), pod)) // No other client writes the pod before it runs.
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	f.requireNoError(f.Status().Update(f.t.Context(), pod))
	return pod
}

// endPod deletes the pod as the kubelet does when the containers have ended.
func (f *fixture) endPod(pod *corev1.Pod) {
	f.t.Helper()
	f.requireNoError(client.IgnoreNotFound(f.Delete(f.t.Context(), pod, client.GracePeriodSeconds(0))))
}

func (f *fixture) awaitTerminating(pod *corev1.Pod) {
	f.t.Helper()
	f.pollUntil("the pod "+pod.Name+" is evicted", func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return !pod.DeletionTimestamp.IsZero(), err
	})
}

func (f *fixture) awaitCondition(name string, kind machinev1.ConditionType,
	status corev1.ConditionStatus) machinev1.Condition {
	f.t.Helper()
	is := func(c machinev1.Condition) bool { return c.Type == kind && c.Status == status }
	m := f.awaitMachine(string(kind)+" of Machine "+name+" is "+string(status), name, func(m *machinev1.Machine) bool {
		return slices.ContainsFunc(m.Status.Conditions, is)
	})
	return m.Status.Conditions[slices.IndexFunc(m.Status.Conditions, is)]
}

//
func TestDeletion_DrainsNode(t *testing.T) {
	f := start(t)
	m, node := f.newRunningMachine("win")
	guarded, plain := f.newRunningPod("guarded", node), f.newRunningPod("plain", node)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guarded", Namespace: f.namespace},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}},
	}
	f.requireNoError(f.Create(t.Context(), budget))
	f.pollUntil("the budget is known", func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKeyFromObject(budget), budget)
		return budget.Status.ObservedGeneration > 0, err
	})

	f.requireNoError(f.Delete(t.Context(), m))
	f.awaitPhase("win", machinev1.PhaseDeleting)
	f.awaitTerminating(plain)
	f.awaitCondition("win", machinev1.MachineDrained, corev1.ConditionFalse)
	f.requireNoError(f.Get(t.Context(), client.ObjectKeyFromObject(guarded), guarded))
	f.requireNoError(f.Get(t.Context(), client.ObjectKeyFromObject(node), node))
	if !guarded.DeletionTimestamp.IsZero() || !node.Spec.Unschedulable || f.memory.countMachines() != 1 {
		t.Errorf("guarded pod deleted at %v, unschedulable %v, virtual machines %d", guarded.DeletionTimestamp,
			node.Spec.Unschedulable, f.memory.countMachines())
	}

	f.requireNoError(f.Delete(t.Context(), budget))
	f.awaitTerminating(guarded)
	if f.memory.countMachines() != 1 {
		t.Error("the virtual machine is gone before its pods")
	}
	f.endPod(guarded)
	f.endPod(plain)
	f.awaitGone(m)
	f.awaitGone(node)
	if f.memory.countMachines() != 0 {
		t.Error("the virtual machine is still there")
	}
}

func TestDeletion_DaemonPodsNotAwaited(t *testing.T) {
	f := start(t)
	daemons := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "daemon", Namespace: f.namespace},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "daemon"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "daemon"}},
				Spec: corev1.PodSpec{
					Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					NodeSelector: map[string]string{"for": f.namespace},
					Containers:   []corev1.Container{{Name: "c", Image: "example.com/app"}}}},
		},
	}
	f.requireNoError(f.Create(t.Context(), daemons))
	m, node := f.newRunningMachine("win", func(m *machinev1.Machine) { m.Spec.Labels = map[string]string{"for": f.namespace} })
	f.pollUntil("the daemon's pod is on the Node", func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		err := f.List(ctx, pods, client.InNamespace(f.namespace))
		return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == node.Name }), err
	})
	f.requireNoError(f.Delete(t.Context(), m))
	f.awaitGone(m)
}

//
func TestDeletion_ExcludedMachineNotDrained(t *testing.T) {
	f := start(t)
	m, node := f.newRunningMachine("win", func(m *machinev1.Machine) {
		m.Annotations = map[string]string{annotationExcludeDraining: ""}
	})
	pod := f.newRunningPod("app", node)
	f.requireNoError(f.Delete(t.Context(), m))
	f.awaitGone(m)
	f.awaitGone(node)
	f.endPod(pod)
}

func TestDeletion_HooksBlockDrainAndTermination(t *testing.T) {
	f := start(t)
	m, node := f.newRunningMachine("win", func(m *machinev1.Machine) {
		m.Spec.LifecycleHooks = machinev1.LifecycleHooks{
			PreDrain:     []machinev1.LifecycleHook{{Name: "Migrate", Owner: "tests"}},
			PreTerminate: []machinev1.LifecycleHook{{Name: "Backup", Owner: "tests"}},
		}
	})
	pod := f.newRunningPod("app", node)
	f.requireNoError(f.Delete(t.Context(), m))
	if c := f.awaitCondition("win", machinev1.MachineDrainable,
		corev1.ConditionFalse); c.Reason != machinev1.MachineHookPresent {
		t.Errorf("reason %s", c.Reason)
	}
	f.requireNoError(f.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	if !pod.DeletionTimestamp.IsZero() {
		t.Error("the pod was evicted before the hook was taken away")
	}
	updateObject(f, m, func(m *machinev1.Machine) { m.Spec.LifecycleHooks.PreDrain = nil })
	f.awaitTerminating(pod)
	f.endPod(pod)
	f.awaitCondition("win", machinev1.MachineTerminable, corev1.ConditionFalse)
	if f.memory.countMachines() != 1 {
		t.Error("the virtual machine went before the hook was taken away")
	}
	updateObject(f, m, func(m *machinev1.Machine) { m.Spec.LifecycleHooks.PreTerminate = nil })
	f.awaitGone(m)
}

//
func TestDeletion_UnreachableNodeEnds(t *testing.T) {
	f := start(t, fastClock)
	m, node := f.newRunningMachine("win")
	pod := f.newRunningPod("app", node, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600) })
	f.reportReady(node, corev1.ConditionUnknown)
	f.requireNoError(f.Delete(t.Context(), m))
	f.awaitTerminating(pod)
	if grace := *pod.DeletionGracePeriodSeconds; grace != unreachableGraceSeconds {
		t.Errorf("the pod has %d s to end", grace)
	}
	deadline := pod.DeletionTimestamp.Add(unreachableGracePeriod)
	f.awaitGone(m)
	if f.clock.Now().Before(deadline) {
		t.Error("its pod was not waited for")
	}
	f.endPod(pod)
}

func TestDeletion_RetriedAfterCloudError(t *testing.T) {
	f := start(t)
	f.faults.Fail(Delete, "*", errors.New("internal error"))
	f.newMachine("win")
	m := f.awaitPhase("win", machinev1.PhaseProvisioned)
	f.requireNoError(f.Delete(t.Context(), m))
	f.awaitEvent("FailedDelete", "win")
	f.faults.Heal()
	f.awaitGone(m)
}

func TestDeletion_DuringProvisioningLeavesNoVM(t *testing.T) {
	f := start(t)
	f.memory.holdBack()
	m := f.newMachine("win")
	f.pollUntil("the cloud was asked", func(context.Context) (bool, error) { return f.memory.countMachines() == 1, nil })
	f.requireNoError(f.Delete(t.Context(), m))
	f.awaitGone(m)
	if f.memory.countMachines() != 0 {
		t.Error("the virtual machine is still there")
	}
}

func TestSkipOverduePods(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		deleted *metav1.Time
		waits   bool
	}{
		"a pod that is not terminating is waited for":          {nil, true},
		"a pod whose deadline is ahead is waited for":          {ptr.To(metav1.NewTime(now.Add(time.Hour))), true},
		"a pod whose deadline was just now is waited for":      {ptr.To(metav1.NewTime(now.Add(-time.Minute))), true},
		"a pod that should have ended long ago is not awaited": {ptr.To(metav1.NewTime(now.Add(-6 * time.Minute))), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := skipOverduePods(now)(corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: c.deleted}}).Delete; got != c.waits {
				t.Errorf("waits: %v", got)
			}
		})
	}
}
