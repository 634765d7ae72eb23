package wine_test

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// workloadLabels are the labels of the workload's pods.
var workloadLabels = map[string]string{"app": "web"}

// deployWorkload creates a Deployment on the lab's hosts with a budget that allows one unavailable pod. It waits
// until all pods run, and returns the namespace.
func (l *lab) deployWorkload(replicas int) (namespace string) {
	l.Helper()
	namespace = clustertest.Namespace(l.T, l.Cluster())
	requireNoError(l.T, l.WaitFor(l.Context(), "the namespace's service account", &corev1.ServiceAccount{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
			return err == nil, client.IgnoreNotFound(err)
		}))
	var hosts []string // excludes nodes of previous tests
	for _, h := range l.hosts {
		hosts = append(hosts, nodeName(h))
	}
	selector := &metav1.LabelSelector{MatchLabels: workloadLabels}
	pod := corev1.PodSpec{
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts},
			}}},
		}}},
		Tolerations: []corev1.Toleration{{Key: "os", Value: "Windows",
			Effect: corev1.TaintEffectNoSchedule}},
		TerminationGracePeriodSeconds: ptr.To[int64](1),
		Containers:                    []corev1.Container{{Name: "web", Image: "example.com/web:1"}},
	}
	name := metav1.ObjectMeta{Namespace: namespace, Name: "web"}
	requireNoError(l.T, l.Client.Create(l.Context(), &appsv1.Deployment{ObjectMeta: name, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(replicas)), Selector: selector,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: workloadLabels}, Spec: pod},
	}}))
	requireNoError(l.T, l.Client.Create(l.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: name,
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: selector,
		}}))
	l.Cleanup(func() { // no kubelet is left to end the pods
		ctx, in := context.Background(), client.InNamespace(namespace)
		_ = l.Client.DeleteAllOf(ctx, &appsv1.Deployment{}, in)
		_ = l.Client.DeleteAllOf(ctx, &policyv1.PodDisruptionBudget{}, in)
		_ = l.Client.DeleteAllOf(ctx, &corev1.Pod{}, in, client.GracePeriodSeconds(0))
	})
	l.waitForPods(namespace, replicas)
	return namespace
}

// waitForPods waits until the given number of the workload's pods are Ready and not being deleted.
func (l *lab) waitForPods(namespace string, want int) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	requireNoError(l.T, l.WaitFor(ctx, "the workload to run", &corev1.Pod{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			var pods corev1.PodList
			err := reader.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(workloadLabels))
			n := 0
			for i := range pods.Items {
				for _, c := range pods.Items[i].Status.Conditions {
					if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pods.Items[i].DeletionTimestamp == nil {
						n++
					}
				}
			}
			return n == want, err
		}))
}

// watchAvailability starts to record the availability of the lab's nodes and of the workload's pods.
func (l *lab) watchAvailability(namespace string) *testenv.Availability {
	l.Helper()
	var nodes corev1.NodeList
	requireNoError(l.T, l.Client.List(l.Context(), &nodes))
	options := testenv.AvailabilityOptions{PodNamespace: namespace, PodLabels: workloadLabels}
	for i := range nodes.Items {
		if l.hostOfNode(nodes.Items[i].Name) == nil {
			options.Except = append(options.Except, nodes.Items[i].Name)
		}
	}
	a, err := l.WatchAvailability(l.Context(), options)
	requireNoError(l.T, err)
	l.Cleanup(a.Stop)
	return a
}
