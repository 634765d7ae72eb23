package instance

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/drain"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const (
	// drainAttempt is how long one reconcile waits for evicted pods before it reports and tries again.
	drainAttempt = 30 * time.Second
	// namedPods is how many pods a status names.
	namedPods = 10
	// goneAfterSeconds is how long a pod on a dead host may be terminating before the drain no longer waits for it.
	goneAfterSeconds = 60
)

// drainNode makes a node unschedulable and evicts its pods with their own grace periods, honouring their budgets. DaemonSet pods stay,
// emptyDir volumes are given up.
func (s *scope) drainNode(ctx context.Context, node *corev1.Node) *obstacle {
	if err := s.cordon(ctx, node); err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "make the Node unschedulable", err)
	}
	refusal := &lastLine{}
	helper := &drain.Helper{
		Ctx: ctx, Client: s.Clientset, Force: true, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		Timeout: drainAttempt, Out: io.Discard, ErrOut: refusal,
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
	s.progress(ctx, "DrainNode", 0, 0, "evicting pods from Node "+node.Name)
	if err := helper.DeleteOrEvictPods(list.Pods()); err != nil {
		return drainObstacle(node, cmp.Or(refusal.String(), err.Error())+podsLeft(helper, node.Name))
	}
	return nil
}

// lastLine keeps what the drain library has printed last: why an eviction is refused, which its error does not say.
type lastLine struct {
	mu   sync.Mutex
	text string
}

// Write implements io.Writer.
func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = strings.TrimSpace(string(p))
	return len(p), nil
}

func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSuffix(l.text, ".")
}

func podsLeft(helper *drain.Helper, node string) string {
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 || len(list.Pods()) == 0 {
		return ""
	}
	var names []string
	for i, pod := range list.Pods() {
		if i == namedPods {
			names = append(names, fmt.Sprintf("and %d more", len(list.Pods())-namedPods))
			break
		}
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	return ". Pods that are left: " + strings.Join(names, ", ") + "."
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
