package upgrade

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/standin/kubelet"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

func TestDrain_BlockingBudgetReportedAndRetried(t *testing.T) {
	const again = 8 * time.Minute
	clock := fastClock(t)
	l := start(t, withoutMachines, testenv.Options{Hosts: testenv.Hosts(2), LinuxNodes: 1, Clock: clock})
	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
		p.DrainTimeout, p.FailureDeadline = &metav1.Duration{Duration: time.Minute}, &metav1.Duration{Duration: again}
	})
	o := l.startOperator(initial)
	l.requireNoError(l.ListHosts(t.Context()))
	l.waitUntilUpgraded(initial, 2, waitTimeout)
	w := l.deployWorkload(1, func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector[corev1.LabelHostname] = "instance-1" })
	w.setBudget(1)
	follow := l.watchAvailability(w)
	l.upgradeOperator(o, patch)

	message := l.waitForFalse("instance-1", v1alpha1.ConditionUpToDate, v1alpha1.ReasonDrainTimedOut)
	if !strings.Contains(message, w.namespace+"/web-") || !strings.Contains(message, "PodDisruptionBudget") {
		t.Errorf("the status names neither pod nor budget: %s", message)
	}
	if node := l.nodeOf("instance-1"); node.Spec.Unschedulable {
		t.Error("the node takes no pods after its time to drain is over")
	}
	l.waitUntilUpgraded(patch, 1, waitTimeout, "instance-1")
	follow.checkBudget(1, 1)
	t.Run("and then allows it", func(t *testing.T) { // The eviction is retried automatically.
		l := l.forSubtest(t)
		w.setBudget(0)
		clock.Step(again)
		l.waitUntilUpgraded(patch, 2, waitTimeout)
		follow.checkBudget(1, 0)
	})
}

// Pods of every kind are evicted as by kubectl drain, and run again.
//
func TestStoryPodsLeaveANodeInTheirOwnTime(t *testing.T) {
	l := start(t, withoutMachines, testenv.Options{Hosts: testenv.Hosts(2), LinuxNodes: 1})
	o := l.startOperator(initial)
	l.requireNoError(l.ListHosts(t.Context()))
	l.waitUntilUpgraded(initial, 2, waitTimeout)
	namespace := l.createNamespace()
	l.podOn("instance-1", namespace, "scratch", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "scratch",
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: `C:\scratch`}}
	})
	const grace = 8 * time.Second
	slow := l.podOn("instance-1", namespace, "slow", func(p *corev1.Pod) {
		p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(20))
		p.Annotations = map[string]string{kubelet.StopSecondsAnnotation: "8"}
	})
	daemons := l.daemonSet(namespace)
	l.requireNoError(l.setUnschedulable("instance-2", true)) // by a user

	o = l.upgradeOperator(o, patch)
	var requested, ended time.Time
	l.awaitCondition("the slow pod to be gone", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		p := &corev1.Pod{}
		if err := reader.Get(ctx, client.ObjectKeyFromObject(slow), p); err != nil {
			ended = time.Now()
			return true, client.IgnoreNotFound(err)
		}
		if p.DeletionTimestamp != nil && requested.IsZero() {
			requested = p.DeletionTimestamp.Add(-time.Duration(ptr.Deref(p.DeletionGracePeriodSeconds, 0)) * time.Second)
			if got := ptr.Deref(p.DeletionGracePeriodSeconds, 0); got != 20 {
				t.Errorf("the pod got %d seconds, and its own grace are 20", got)
			}
		}
		return false, nil
	})
	if elapsed := ended.Sub(requested); elapsed < grace-time.Second {
		t.Errorf("the pod was gone after %s, and takes %s", elapsed, grace)
	}
	l.waitUntilBothUpgraded(patch)
	if !l.nodeOf("instance-2").Spec.Unschedulable {
		t.Error("the node that a user had made unschedulable takes pods again")
	}
	if l.nodeOf("instance-1").Spec.Unschedulable {
		t.Error("the other node takes no pods")
	}
	for _, pod := range l.podsOf(namespace, "daemon") {
		if !daemons[pod.UID] {
			t.Errorf("DaemonSet pod %s was made anew: it was evicted", pod.Name)
		}
	}
	if len(l.podsOf(namespace, "")) != 2 {
		t.Error("pods without a controller are still there")
	}
	l.requireNoError(o.Stop())
}

// A client makes a node schedulable during the drain. New pods must be evicted like all other pods before the
// node's programs are replaced.
func TestDrain_PodsCreatedAfterUncordonEvicted(t *testing.T) {
	l := start(t, withoutMachines, testenv.Options{Hosts: testenv.Hosts(1), LinuxNodes: 1})
	o := l.startOperator(initial)
	l.requireNoError(l.ListHosts(t.Context()))
	l.waitUntilUpgraded(initial, 1, waitTimeout)
	namespace := l.createNamespace()
	slow := l.podOn("instance-1", namespace, "slow", func(p *corev1.Pod) {
		p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(30))
		p.Annotations = map[string]string{kubelet.StopSecondsAnnotation: "15"}
	})
	l.upgradeOperator(o, patch)
	l.awaitCondition("the slow pod to be asked to leave", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		err := reader.Get(ctx, client.ObjectKeyFromObject(slow), slow)
		return slow.DeletionTimestamp != nil, err
	})
	l.requireNoError(l.setUnschedulable("instance-1", false))
	late := l.podOn("instance-1", namespace, "late", func(*corev1.Pod) {})
	if err := l.Client.Get(t.Context(), client.ObjectKeyFromObject(slow), slow); err != nil {
		t.Fatalf("the slow pod left too soon for this test: %v", err)
	}
	l.waitUntilUpgraded(patch, 1, waitTimeout)
	if err := l.Client.Get(t.Context(), client.ObjectKeyFromObject(late), late); !apierrors.IsNotFound(err) {
		t.Errorf("the pod that came late has lived through the upgrade of its node (%v)", err)
	}
}

// waitUntilBothUpgraded waits until both nodes are of a release and no disruption slot is held, even if the nodes are
// unschedulable.
func (l lab) waitUntilBothUpgraded(name string) {
	l.Helper()
	version := releaseByName(l.T, name).Version
	l.awaitCondition("both nodes to be of version "+version, &corev1.Node{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			all, err := windowsNodes(ctx, reader)
			n := 0
			for _, node := range all {
				if _, cordonedByOperator := node.Annotations[v1alpha1.AnnotationCordoned]; node.Annotations[v1alpha1.AnnotationVersion] == version && !cordonedByOperator {
					n++
				}
			}
			return n == 2, err
		})
	l.waitForPolicy("to have nothing that is disturbed", func(p *v1alpha1.WindowsDisruptionPolicy) bool {
		return len(p.Status.Disruptions) == 0
	})
}

// setUnschedulable makes a node unschedulable or schedulable, as kubectl cordon and uncordon do.
func (l lab) setUnschedulable(node string, unschedulable bool) error {
	patch := `{"spec":{"unschedulable":null}}`
	if unschedulable {
		patch = `{"spec":{"unschedulable":true}}`
	}
	return l.Client.Patch(l.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}},
		client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// daemonSet creates a DaemonSet, and returns the UIDs of the two pods once they run.
func (l lab) daemonSet(namespace string) map[any]bool {
	l.Helper()
	labels := map[string]string{"app": "daemon"}
	l.requireNoError(l.Client.Create(l.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "daemon"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
		},
	}))
	uids := map[any]bool{}
	l.awaitCondition("the DaemonSet to run", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		var pods corev1.PodList
		err := reader.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(labels))
		clear(uids)
		for i := range pods.Items {
			if isPodReady(&pods.Items[i]) {
				uids[pods.Items[i].UID] = true
			}
		}
		return len(uids) == 2, err
	})
	return uids
}

// podsOf returns the pods of an app in a namespace, or all pods.
func (l lab) podsOf(namespace, app string) []corev1.Pod {
	l.Helper()
	var pods corev1.PodList
	options := []client.ListOption{client.InNamespace(namespace)}
	if app != "" {
		options = append(options, client.MatchingLabels{"app": app})
	}
	l.requireNoError(l.Client.List(l.Context(), &pods, options...))
	return pods.Items
}

//
func TestDrain_ExcludedMachineNotDrained(t *testing.T) {
	l := start(t, withMachines, testenv.Options{LinuxNodes: 1})
	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.UpgradeStrategy = v1alpha1.UpgradeInPlace })
	o := l.startOperator(initial)
	l.requireNoError(l.CreateMachineSet(t.Context(), "windows-a", 1, testenv.MachineSetOptions{}))
	l.runWithTimeout(2*time.Minute, func(ctx context.Context) error {
		_, err := l.WaitMachinesReady(ctx, "windows-a", 1)
		return err
	})
	name := l.machineNames()[0]
	machine, err := l.Machine(t.Context(), name)
	l.requireNoError(err)
	l.setAnnotation(machine, v1alpha1.AnnotationExcludeDrain, "")
	pod := l.podOn(l.machineNode(name), l.createNamespace(), "stays")
	l.upgradeOperator(o, patch)
	l.waitUntilUpgraded(patch, 1, waitTimeout)
	after := &corev1.Pod{}
	l.requireNoError(l.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), after))
	if after.UID != pod.UID || after.DeletionTimestamp != nil {
		t.Error("the pod was evicted")
	}
}
