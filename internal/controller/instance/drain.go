package instance

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/drain"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const (
	// drainAttempt is how long one reconcile waits for evicted pods before it reports and tries again.
	drainAttempt = 30 * time.Second
	// goneAfterSeconds is how long a pod on a dead host may be terminating before the drain no longer waits for it.
	goneAfterSeconds = 60
)

// drainNode makes a node unschedulable and evicts its pods with their own grace periods, honouring their budgets. DaemonSet pods stay,
// emptyDir volumes are given up.
func (s *scope) drainNode(ctx context.Context, node *corev1.Node) *obstacle {
	if err := s.cordon(ctx, node); err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "make the Node unschedulable", err)
	}
	s.progress(ctx, "DrainNode", 0, 0, "evicting pods from Node "+node.Name)
	helper := &drain.Helper{
		Ctx: ctx, Client: s.Clientset, Force: true, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		Timeout: drainAttempt, Out: io.Discard, ErrOut: io.Discard,
	}
	if !isReady(node) {
		// No kubelet will confirm that the pods have ended.
		helper.SkipWaitForDeleteTimeoutSeconds = goneAfterSeconds
	}
	list, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return drainObstacle(node, fmt.Sprint(errs))
	}
	if len(list.Pods()) == 0 {
		return nil
	}
	if err := helper.DeleteOrEvictPods(list.Pods()); err != nil {
		return drainObstacle(node, err.Error()+podsLeft(helper, node.Name))
	}
	return nil
}

func podsLeft(helper *drain.Helper, node string) string {
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 || len(list.Pods()) == 0 {
		return ""
	}
	names := make([]string, 0, len(list.Pods()))
	for _, pod := range list.Pods() {
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	return ". Pods that are left: " + strings.Join(names, ", ")
}

func drainObstacle(node *corev1.Node, message string) *obstacle {
	return &obstacle{
		condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonDrainBlocked,
		message: "Node " + node.Name + " is not drained yet: " + message,
		next:    "The operator goes on when the pods are gone. A PodDisruptionBudget that allows no disruption must be changed by its owner.",
	}
}

// cordon notes that the operator made the node unschedulable, unless a user had done so before.
func (s *scope) cordon(ctx context.Context, node *corev1.Node) error {
	if node.Spec.Unschedulable {
		return nil
	}
	after := node.DeepCopy()
	after.Spec.Unschedulable = true
	setAll(&after.Annotations, map[string]string{v1alpha1.AnnotationCordoned: "true"})
	return s.patchNode(ctx, node, after)
}
