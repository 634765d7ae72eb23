package cluster_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

// The controller manager removes the taint of a new node, and then the scheduler uses the node.
func TestScheduling(t *testing.T) {
	c := plain.Cluster(t)
	admin := newClientset(t, c.Config)
	namespace := clustertest.Namespace(t, c)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"test": "scheduling"},
			Containers:   []corev1.Container{{Name: "main", Image: "none"}},
		},
	}
	awaitCondition(t, "make a pod, once the namespace has its service account", func(ctx context.Context) (bool, error) {
		_, err := admin.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err == nil, nil
	})
	createNode(t, admin, "roomy")
	nodes := admin.CoreV1().Nodes()
	const label = `{"metadata":{"labels":{"test":"scheduling"}}}`
	if _, err := nodes.Patch(t.Context(), "roomy", types.MergePatchType, []byte(label),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	const ready = `{"status":{"allocatable":{"cpu":"1","memory":"1Gi","pods":"10"},"capacity":{"cpu":"1","memory":"1Gi","pods":"10"},` +
		`"conditions":[{"type":"Ready","status":"True","reason":"Test","message":""}]}}`
	if _, err := nodes.Patch(t.Context(), "roomy", types.MergePatchType, []byte(ready), metav1.PatchOptions{},
		"status"); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, "wait for the pod to get the node", func(ctx context.Context) (bool, error) {
		pod, err := admin.CoreV1().Pods(namespace).Get(ctx, "pod", metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName == "roomy", err
	})
}
