package test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

//
func TestStoryPodsWaitUntilTheNodeWasProvenToWork(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	restore := r.Host("instance-1").Machine().FailServiceStart("kube-proxy", 1)
	pod := windowsPod("default")
	if err := r.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Client.Delete(context.Background(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	})
	run(t, r)
	list(t, r)
	if !waitForSummary(t, r, r.Host("instance-1").Options.Address, "ServiceFailed") {
		t.Fatal("the fault is not reported")
	}

	n := getNode(t, r, "instance-1")
	if !slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == v1alpha1.TaintNotReady }) {
		t.Errorf("the node's taints are %+v", n.Spec.Taints)
	}
	if version, exists := n.Annotations[v1alpha1.AnnotationVersion]; exists {
		t.Errorf("a node whose set-up has failed says that it is of version %q", version)
	}
	waitForPod(t, r, pod, "not to be scheduled", func(p *corev1.Pod) bool {
		return p.Spec.NodeName == "" && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
				c.Reason == corev1.PodReasonUnschedulable
		})
	})

	restore()
	waitUntilReady(t, r)
	waitForPod(t, r, pod, "to run", func(p *corev1.Pod) bool {
		return p.Spec.NodeName == "instance-1" && p.Status.Phase == corev1.PodRunning
	})
	//
	t.Run("and its taint for Windows comes back when somebody takes it away", func(t *testing.T) {
		untaint := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`))
		if err := r.Client.Patch(t.Context(), getNode(t, r, "instance-1"), untaint); err != nil {
			t.Fatal(err)
		}
		waitForTaint(t, r, "instance-1")
	})
}

// waitForTaint waits until a Node has the taint that excludes Linux pods.
func waitForTaint(t *testing.T, r *testenv.Environment, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, "Node "+name+" to have its taint", &corev1.Node{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			n := &corev1.Node{}
			err := reader.Get(ctx, keyOf("", name), n)
			return err == nil && slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
				return taint.ToString() == "os=Windows:NoSchedule"
			}), client.IgnoreNotFound(err)
		})
	if err != nil {
		t.Error(err)
	}
}

// windowsPod returns a pod for Windows nodes, as users write it.
func windowsPod(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "windows-"},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelOSStable: "windows"},
			Tolerations:  []corev1.Toleration{{Key: "os", Value: "Windows", Effect: corev1.TaintEffectNoSchedule}},
			Containers:   []corev1.Container{{Name: "web", Image: "example.com/web:1"}},
		},
	}
}

// waitForPod waits until a pod meets the condition.
func waitForPod(t *testing.T, r *testenv.Environment, pod *corev1.Pod, what string, condition func(*corev1.Pod) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, "the pod "+what, &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		p := &corev1.Pod{}
		err := reader.Get(ctx, client.ObjectKeyFromObject(pod), p)
		return err == nil && condition(p), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Error(err)
	}
}
