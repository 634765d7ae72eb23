package upgrade

import (
	"context"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

// workload is a Deployment on Windows nodes with a PodDisruptionBudget, in a separate namespace.
type workload struct {
	lab
	namespace string
}

func (w *workload) podLabels() map[string]string { return map[string]string{"app": "web"} }

// podSpec returns a pod spec for Windows nodes, as users write it.
func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelOSStable: "windows"},
		Tolerations: []corev1.Toleration{{Key: "os", Value: "Windows",
			Effect: corev1.TaintEffectNoSchedule}},
		TerminationGracePeriodSeconds: ptr.To[int64](5),
		Containers:                    []corev1.Container{{Name: "web", Image: "example.com/web:1"}},
	}
}

// createNamespace creates a namespace that is ready for pods and deleted after the test.
func (l lab) createNamespace() string {
	l.Helper()
	name := clustertest.Namespace(l.T, l.Cluster())
	clients, err := kubernetes.NewForConfig(l.Config)
	l.requireNoError(err)
	l.Cleanup(func() { // No kubelet is left to end the pods.
		for _, kind := range []client.Object{&appsv1.Deployment{}, &appsv1.DaemonSet{}, &policyv1.PodDisruptionBudget{}} {
			_ = l.Client.DeleteAllOf(context.Background(), kind, client.InNamespace(name))
		}
		options := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
		_ = clients.CoreV1().Pods(name).DeleteCollection(context.Background(), options, metav1.ListOptions{})
	})
	l.awaitCondition("namespace "+name+" to have its service account", &corev1.ServiceAccount{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			err := reader.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
			return err == nil, client.IgnoreNotFound(err)
		})
	return name
}

// deployWorkload creates a Deployment with a budget that allows one unavailable pod, and waits until all pods run.
// change may modify the pods.
func (l lab) deployWorkload(replicas int, change ...func(*corev1.PodTemplateSpec)) *workload {
	l.Helper()
	w := &workload{lab: l, namespace: l.createNamespace()}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: w.podLabels()}, Spec: podSpec()}
	for _, apply := range change {
		apply(&template)
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: w.podLabels()}, Template: template,
		},
	}
	l.requireNoError(l.Client.Create(l.Context(), deployment))
	w.setBudget(replicas - 1)
	w.waitForPods(replicas)
	return w
}

// setBudget creates the PodDisruptionBudget or sets its minimum number of available pods.
func (w *workload) setBudget(minAvailable int) {
	w.Helper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}}
	spec := policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(int32(minAvailable))), Selector: &metav1.LabelSelector{MatchLabels: w.podLabels()},
	}
	err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(budget), budget)
	w.requireNoError(client.IgnoreNotFound(err))
	if err == nil {
		before := budget.DeepCopy()
		budget.Spec = spec
		w.requireNoError(w.Client.Patch(w.Context(), budget, client.MergeFrom(before)))
		return
	}
	budget.Spec = spec
	w.requireNoError(w.Client.Create(w.Context(), budget))
}

// waitForPods waits until the given number of pods are Ready and not being deleted, and returns the number of pods per
// node.
func (w *workload) waitForPods(replicas int) (nodes map[string]int) {
	w.Helper()
	w.awaitCondition("the workload to run", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		var pods corev1.PodList
		err := reader.List(ctx, &pods, client.InNamespace(w.namespace), client.MatchingLabels(w.podLabels()))
		nodes = map[string]int{}
		n := 0
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && isPodReady(pod) {
				n++
				nodes[pod.Spec.NodeName]++
			}
		}
		return n == replicas, err
	})
	return maps.Clone(nodes)
}

func isPodReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
