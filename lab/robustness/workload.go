package robustness

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// workloadNamespace contains only the pods that a drain must respect.
	workloadNamespace = "workload"
	// workloadReplicas exceeds the number of hosts, so that most hosts have a pod.
	workloadReplicas = 6
)

// deployWorkload creates pods for all Windows nodes, with a budget that allows each eviction.
func (l *lab) deployWorkload(ctx context.Context) error {
	if err := l.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workloadNamespace}}); err != nil {
		return fmt.Errorf("deploy a workload: %w", err)
	}
	named, labels := metav1.ObjectMeta{Namespace: workloadNamespace, Name: "web"}, map[string]string{"app": "web"}
	pods := &metav1.LabelSelector{MatchLabels: labels}
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](workloadReplicas), Selector: pods,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{corev1.LabelOSStable: "windows"},
				Tolerations: []corev1.Toleration{{Key: "os", Value: "Windows", Effect: corev1.TaintEffectNoSchedule},
					deadNodeToleration(corev1.TaintNodeUnreachable), deadNodeToleration(corev1.TaintNodeNotReady)},
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				Containers:                    []corev1.Container{{Name: "web", Image: "example.com/web:1"}},
			}}}},
		&policyv1.PodDisruptionBudget{ObjectMeta: named, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(0)), Selector: pods,
		}},
	} {
		if err := l.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("deploy a workload: %w", err)
		}
	}
	return nil
}

// deadNodeToleration makes pods leave a dead node after seconds, instead of the API server's default of five minutes.
// Until then a budget protects all of them, since none is healthy.
func deadNodeToleration(taint string) corev1.Toleration {
	return corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](5)}
}

// keepPods makes the budget allow no eviction for a time.
func (l *lab) keepPods(ctx context.Context, _ Action) (func(context.Context) error, error) {
	return func(ctx context.Context) error { return l.setBudget(ctx, "0") }, l.setBudget(ctx, `"100%"`)
}

func (l *lab) setBudget(ctx context.Context, minAvailable string) error {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: workloadNamespace, Name: "web"}}
	return l.Client.Patch(ctx, budget, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"minAvailable":%s}}`, minAvailable)))
}
