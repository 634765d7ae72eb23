package podexec

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Names in deploy/deployment.yaml.
const (
	operatorLabel = "name=windows-machine-config-operator"
	containerName = "manager"
)

// findLeaderPod returns the pod of the operator that is the leader.
func findLeaderPod(ctx context.Context, clientset kubernetes.Interface, namespace string) (*corev1.Pod, error) {
	pods, err := clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: operatorLabel})
	if err != nil {
		return nil, fmt.Errorf("list the pods of the operator: %w", err)
	}
	lease, err := clientset.CoordinationV1().Leases(namespace).Get(ctx, v1alpha1.OperatorLease, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("read the Lease of the operator: %w", err)
	}
	pod := selectLeader(pods.Items, lease)
	if pod == nil {
		return nil, fmt.Errorf("no pod of the operator is ready in namespace %s: %s. See: kubectl get pods -n %s -l %s",
			namespace, describePods(pods.Items), namespace, operatorLabel)
	}
	return pod, nil
}

// selectLeader returns the ready pod that holds the Lease. If no ready pod holds the Lease, selectLeader returns the
// oldest ready pod, because newer pods wait for that pod. The result is nil without a ready pod.
func selectLeader(pods []corev1.Pod, lease *coordinationv1.Lease) *corev1.Pod {
	var chosen *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		switch {
		case !isReady(pod):
		case isLeaseHolder(pod, lease):
			return pod
		case chosen == nil, pod.CreationTimestamp.Before(&chosen.CreationTimestamp):
			chosen = pod
		}
	}
	return chosen
}

// isLeaseHolder reports whether a pod holds the Lease. The holder's identity begins with its host name, which is the
// pod's name.
func isLeaseHolder(pod *corev1.Pod, lease *coordinationv1.Lease) bool {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return false
	}
	return strings.HasPrefix(*lease.Spec.HolderIdentity, pod.Name+"_")
}

func isReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// describePods describes the phases of the pods.
func describePods(pods []corev1.Pod) string {
	if len(pods) == 0 {
		return "no pod exists"
	}
	var list []string
	for _, pod := range pods {
		list = append(list, fmt.Sprintf("%s is %s", pod.Name, pod.Status.Phase))
	}
	return strings.Join(list, ", ")
}
