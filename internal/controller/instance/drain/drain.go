package drain

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

const (
	// drainAttemptTimeout is the maximum time that one job waits for evicted pods before it reports and retries.
	drainAttemptTimeout = 30 * time.Second
	// maxNamedPods is the maximum number of pods that a status names.
	maxNamedPods = 10
	// skipDeleteWaitSeconds is the time after which the drain no longer waits for a terminating pod on an
	// unreachable host.
	skipDeleteWaitSeconds = 60
)

// Drainer evicts the pods of nodes.
type Drainer struct{ Clientset kubernetes.Interface }

// evictPods evicts the pods of the node with their own grace periods, and reports whether there were any. The wait
// for evicted pods ends after the time rest. DaemonSet pods stay, and emptyDir volumes are lost. evictPods calls
// begins before the first eviction.
func (d Drainer) evictPods(ctx context.Context, node *corev1.Node, rest time.Duration, begins func()) (bool, *result.Result) {
	refusal := &lastLineWriter{}
	helper := d.newHelper(ctx)
	helper.Timeout, helper.ErrOut = max(rest, time.Second), refusal
	if !nodeidentity.IsReady(node) {
		// No kubelet will confirm that the pods have ended.
		helper.SkipWaitForDeleteTimeoutSeconds = skipDeleteWaitSeconds
	}
	list, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return false, drainBlocked(node, fmt.Sprint(errs))
	}
	if len(list.Pods()) == 0 {
		return false, nil
	}
	begins()
	if err := helper.DeleteOrEvictPods(list.Pods()); err != nil {
		return true, drainBlocked(node, cmp.Or(refusal.String(), err.Error())+d.describeRemainingPods(ctx, helper, node.Name))
	}
	return true, nil
}

// newHelper returns a kubectl drain helper with the options of the operator.
func (d Drainer) newHelper(ctx context.Context) *drain.Helper {
	return &drain.Helper{
		Ctx: ctx, Client: d.Clientset, Force: true, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true,
		DeleteEmptyDirData: true, Out: io.Discard, ErrOut: io.Discard,
	}
}

// lastLineWriter keeps the last line that the drain library printed: the reason for a refused eviction, which is
// missing from the error.
type lastLineWriter struct {
	mu   sync.Mutex
	text string
}

// Write implements io.Writer.
func (l *lastLineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = strings.TrimSpace(string(p))
	return len(p), nil
}

func (l *lastLineWriter) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSuffix(l.text, ".")
}

// describeRemainingPods describes the pods that remain on the node, and the budgets that protect them.
func (d Drainer) describeRemainingPods(ctx context.Context, helper *drain.Helper, node string) string {
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 || len(list.Pods()) == 0 {
		return ""
	}
	pods := list.Pods()
	var names []string
	for i, pod := range pods {
		if i == maxNamedPods {
			names = append(names, fmt.Sprintf("and %d more", len(pods)-maxNamedPods))
			break
		}
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	text := ". Remaining pods: " + strings.Join(names, ", ") + "."
	if budgets := d.blockingBudgets(ctx, pods[:min(len(pods), maxNamedPods)]); len(budgets) > 0 {
		text += " " + formatBlockingBudgets(budgets)
	}
	return text
}

func formatBlockingBudgets(budgets []string) string {
	return "These PodDisruptionBudgets allow no disruption now: " + strings.Join(budgets, ", ") + "."
}

// blockingBudgets returns the PodDisruptionBudgets of the pods that allow no disruption now. Budgets that
// cannot be read are omitted, because the result only explains a refusal.
func (d Drainer) blockingBudgets(ctx context.Context, pods []corev1.Pod) []string {
	known := map[string][]policyv1.PodDisruptionBudget{}
	var names []string
	for _, pod := range pods {
		budgets, read := known[pod.Namespace]
		if !read {
			if list, err := d.Clientset.PolicyV1().PodDisruptionBudgets(pod.Namespace).List(ctx,
				metav1.ListOptions{}); err == nil {
				budgets = list.Items
			}
			known[pod.Namespace] = budgets
		}
		for _, budget := range budgets {
			selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
			name := budget.Namespace + "/" + budget.Name
			if err == nil && budget.Status.DisruptionsAllowed == 0 && selector.Matches(labels.Set(pod.Labels)) &&
				!slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func drainBlocked(node *corev1.Node, message string) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonDrainBlocked, HoldsSlot: true,
		Message:    "Node " + node.Name + " is not drained yet: " + message,
		NextAction: "The operator continues when the pods are evicted. If a PodDisruptionBudget allows no disruption, its owner must change it.",
	}
}
