package settings

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// replicas is the number of pods in the workload. One pod may be unavailable.
const replicas = hosts

// Namespace of the workload.
const workloadNamespace = "default"

var workloadLabels = map[string]string{"app": "settings-web"}

// deployWorkload creates the workload, with pods that show which nodes were drained.
func deployWorkload(ctx context.Context, r *testenv.Environment) error {
	meta := metav1.ObjectMeta{Namespace: workloadNamespace, Name: "web"}
	selector := &metav1.LabelSelector{MatchLabels: workloadLabels}
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: workloadLabels},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelOSStable: "windows"},
			Tolerations: []corev1.Toleration{{Key: "os", Value: "Windows",
				Effect: corev1.TaintEffectNoSchedule}},
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []corev1.Container{{Name: "web", Image: "example.com/web:1"}},
		},
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta}
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(replicas - 1)),
		Selector: selector}
	if err := r.Client.Create(ctx, budget); err != nil {
		return err
	}
	deployment := &appsv1.Deployment{ObjectMeta: meta}
	deployment.Spec = appsv1.DeploymentSpec{Replicas: ptr.To[int32](replicas), Selector: selector, Template: pods}
	return r.Client.Create(ctx, deployment)
}

// waitForPods waits until the workload runs, and returns the node of each pod by UID.
func (l lab) waitForPods() (running map[types.UID]string) {
	l.Helper()
	l.awaitCondition("the workload to run", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		var list corev1.PodList
		err := reader.List(ctx, &list, client.InNamespace(workloadNamespace), client.MatchingLabels(workloadLabels))
		running = map[types.UID]string{}
		for i := range list.Items {
			pod := &list.Items[i]
			ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
			if ready && pod.DeletionTimestamp == nil {
				running[pod.UID] = pod.Spec.NodeName
			}
		}
		return len(running) == replicas, err
	})
	return running
}

// countMoved counts the pods that no longer exist.
func countMoved(before, after map[types.UID]string) (n int) {
	for uid := range maps.Keys(before) {
		if _, still := after[uid]; !still {
			n++
		}
	}
	return n
}
