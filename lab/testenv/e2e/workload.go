package e2e

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Workload is a Deployment on Windows nodes with a PodDisruptionBudget, in a separate namespace.
type Workload struct {
	// Namespace contains nothing else. Deployment and budget are named web.
	Namespace string

	env *testenv.Environment
}

var workloadLabels = map[string]string{"app": "web"}

// Deploy creates a workload on the Windows nodes with these labels. Its pods may be evicted within the budget's
// minAvailable. The workload ends with the test.
func Deploy(t *testing.T, r *testenv.Environment, replicas int32, nodes map[string]string, minAvailable string) *Workload {
	t.Helper()
	w := &Workload{Namespace: clustertest.Namespace(t, r.Cluster()), env: r}
	t.Cleanup(func() { w.deleteWorkload(t) })
	w.awaitCondition(t, "the namespace's service account", &corev1.ServiceAccount{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			err := reader.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: "default"}, &corev1.ServiceAccount{})
			return err == nil, client.IgnoreNotFound(err)
		})
	selector := map[string]string{corev1.LabelOSStable: "windows"}
	for label, value := range nodes {
		selector[label] = value
	}
	pods := &metav1.LabelSelector{MatchLabels: workloadLabels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: workloadLabels}, Spec: corev1.PodSpec{
		NodeSelector: selector,
		Tolerations: []corev1.Toleration{{Key: "os", Value: "Windows",
			Effect: corev1.TaintEffectNoSchedule}},
		TerminationGracePeriodSeconds: ptr.To[int64](1),
		Containers:                    []corev1.Container{{Name: "web", Image: "example.com/web:1"}},
	}}
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: w.objectMeta(), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: pods,
			Template: template}},
		&policyv1.PodDisruptionBudget{ObjectMeta: w.objectMeta(), Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.Parse(minAvailable)), Selector: pods,
		}},
	} {
		if err := r.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	w.AwaitPods(t, int(replicas))
	w.awaitBudget(t)
	return w
}

func (w *Workload) objectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: "web"}
}

// deleteWorkload deletes the workload and force deletes the pods, because the kubelets may have stopped already.
func (w *Workload) deleteWorkload(t *testing.T) {
	ctx, in := context.WithoutCancel(t.Context()), client.InNamespace(w.Namespace)
	for _, kind := range []client.Object{&appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}, &corev1.Pod{}} {
		if err := w.env.Client.DeleteAllOf(ctx, kind, in, client.GracePeriodSeconds(0)); err != nil {
			t.Errorf("take the workload away: %v", err)
		}
	}
}

// SetBudget sets minAvailable of the PodDisruptionBudget, a number or a percentage, and waits until the value applies
// to evictions.
func (w *Workload) SetBudget(t *testing.T, minAvailable string) {
	t.Helper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: w.objectMeta()}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minAvailable":`+formatMinAvailable(minAvailable)+`}}`))
	if err := w.env.Client.Patch(t.Context(), budget, patch); err != nil {
		t.Fatal(err)
	}
	w.awaitBudget(t)
}

func formatMinAvailable(minAvailable string) string {
	if value := intstr.Parse(minAvailable); value.Type == intstr.Int {
		return value.String()
	}
	return `"` + minAvailable + `"`
}

// awaitBudget waits until the disruption controller has observed the current budget.
func (w *Workload) awaitBudget(t *testing.T) {
	t.Helper()
	w.awaitCondition(t, "the budget to be in force", &policyv1.PodDisruptionBudget{},
		func(ctx context.Context, _ client.Reader) (bool, error) {
			budget := w.Budget(t)
			return budget.Status.ObservedGeneration == budget.Generation && budget.Status.ExpectedPods > 0, nil
		})
}

// Budget returns the current PodDisruptionBudget from the API server.
func (w *Workload) Budget(t *testing.T) *policyv1.PodDisruptionBudget {
	t.Helper()
	budget := &policyv1.PodDisruptionBudget{}
	if err := w.env.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "web"}, budget); err != nil {
		t.Fatal(err)
	}
	return budget
}

// AwaitPods waits until the given number of pods are Ready and not being deleted, and returns them.
func (w *Workload) AwaitPods(t *testing.T, replicas int) (running []corev1.Pod) {
	t.Helper()
	w.awaitCondition(t, "the workload to run", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		var pods corev1.PodList
		err := reader.List(ctx, &pods, client.InNamespace(w.Namespace))
		running = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || !isPodReady(p) })
		return len(running) == replicas, err
	})
	return running
}

// PodsOnNode returns the current pods on a node from the API server, including pods that are being deleted.
func (w *Workload) PodsOnNode(t *testing.T, node string) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := w.env.Client.List(t.Context(), &pods, client.InNamespace(w.Namespace),
		client.MatchingFields{"spec.nodeName": node}); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func isPodReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (w *Workload) awaitCondition(t *testing.T, what string, watched client.Object, condition func(context.Context,
	client.Reader) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), WaitTimeout)
	defer cancel()
	if err := w.env.WaitFor(ctx, what, watched, condition); err != nil {
		t.Fatal(err)
	}
}
