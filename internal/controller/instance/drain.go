package instance

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubectl/pkg/drain"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// drainNode makes a node unschedulable and evicts its pods with their own grace periods, honoring their budgets. DaemonSet pods stay,
// emptyDir volumes are given up. When the pods do not leave in time, the node takes pods again and gives up its turn: it is tried again
// later. A node that is on its way out of the cluster stays unschedulable.
func (s *scope) drainNode(ctx context.Context, node *corev1.Node, cause v1alpha1.DisruptionCause) *obstacle {
	if !node.Spec.Unschedulable {
		s.emit(nodeDrains(s.instance, node, cause))
	}
	since, err := s.cordon(ctx, node)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "make the Node unschedulable", err)
	}
	if s.changeBegun(node) {
		return nil
	}
	if without, err := s.undrained(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "read the Machine", err)
	} else if without {
		return nil
	}
	o := s.evict(ctx, node, s.settings.DrainTimeout-s.Clock.Since(since))
	if o == nil || s.Clock.Since(since) < s.settings.DrainTimeout {
		return o
	}
	return s.drainTimedOut(ctx, node, cause, o)
}

// changeBegun reports whether the node was drained before its host began to change: what has come to it since came in spite of that.
func (s *scope) changeBegun(node *corev1.Node) bool {
	_, ours := node.Annotations[v1alpha1.AnnotationCordoned]
	return ours && node.Spec.Unschedulable && s.instance.Status.SpecDigest == "" &&
		s.instance.Spec.DesiredState == v1alpha1.DesiredStateNode && s.session.facts != nil && s.session.facts.Fallback != ""
}

// undrained reports whether the Machine of the node says that it is not to be drained.
func (s *scope) undrained(ctx context.Context) (bool, error) {
	reference := s.instance.Spec.Source.Machine
	if reference == nil {
		return false, nil
	}
	machine := &machinev1beta1.Machine{}
	err := s.Live.Get(ctx, types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}, machine)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	_, without := machine.Annotations[v1alpha1.AnnotationExcludeDrain]
	return without && machine.UID == reference.UID, nil
}

// evict has the pods leave, as far as they do within one attempt, and within the rest of the time that they have.
func (s *scope) evict(ctx context.Context, node *corev1.Node, rest time.Duration) *obstacle {
	refusal := &lastLine{}
	helper := &drain.Helper{
		Ctx: ctx, Client: s.Clientset, Force: true, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		Timeout: max(min(drainAttempt, rest), time.Second), Out: io.Discard, ErrOut: refusal,
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
		return drainObstacle(node, cmp.Or(refusal.String(), err.Error())+s.podsLeft(ctx, helper, node.Name))
	}
	return nil
}

// drainTimedOut gives up for now: the node takes pods again, unless a user wants it otherwise, and only then another's turn comes.
func (s *scope) drainTimedOut(ctx context.Context, node *corev1.Node, cause v1alpha1.DisruptionCause, blocked *obstacle) *obstacle {
	after := "The operator tries again later. "
	if cause != v1alpha1.CauseRemoval {
		if err := s.takeIntoService(ctx); err != nil {
			return apiObstacle(v1alpha1.ConditionReady, "make the Node schedulable again", err)
		}
		after = "The node takes pods again as before. "
	}
	message := fmt.Sprintf("The pods of the node did not leave within %s: %s", s.settings.DrainTimeout, blocked.message)
	s.noteFailure(node, v1alpha1.ReasonDrainTimedOut, message, "")
	failed := s.instance.Status.FailedChange
	failed.Cause, failed.RolledBack, failed.DrainTimedOut = cause, true, true
	if o := s.leaveGate(ctx); o != nil {
		return o
	}
	s.emit(drainGivenUp(s.instance, node, message))
	s.session.forgetHost()
	s.Hosts.Close(s.instance.Name)
	return &obstacle{
		condition: v1alpha1.ConditionUpToDate, reason: v1alpha1.ReasonDrainTimedOut, outcome: wait, after: failed.RetryAfter.Sub(s.Clock.Now()),
		message: message, next: after + "A PodDisruptionBudget that allows no disruption must be changed by its owner.",
	}
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

// podsLeft names the pods that have not left, and the budgets that keep them.
func (s *scope) podsLeft(ctx context.Context, helper *drain.Helper, node string) string {
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 || len(list.Pods()) == 0 {
		return ""
	}
	pods := list.Pods()
	var names []string
	for i, pod := range pods {
		if i == namedPods {
			names = append(names, fmt.Sprintf("and %d more", len(pods)-namedPods))
			break
		}
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	text := ". Pods that are left: " + strings.Join(names, ", ") + "."
	if budgets := s.blockingBudgets(ctx, pods[:min(len(pods), namedPods)]); len(budgets) > 0 {
		text += " No pod may be away now by PodDisruptionBudget " + strings.Join(budgets, ", ") + "."
	}
	return text
}

// blockingBudgets are the PodDisruptionBudgets of the pods that allow no disruption now. They only explain, so that an error leaves them out.
func (s *scope) blockingBudgets(ctx context.Context, pods []corev1.Pod) []string {
	known := map[string][]policyv1.PodDisruptionBudget{}
	var names []string
	for _, pod := range pods {
		budgets, read := known[pod.Namespace]
		if !read {
			if list, err := s.Clientset.PolicyV1().PodDisruptionBudgets(pod.Namespace).List(ctx, metav1.ListOptions{}); err == nil {
				budgets = list.Items
			}
			known[pod.Namespace] = budgets
		}
		for _, budget := range budgets {
			selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
			name := budget.Namespace + "/" + budget.Name
			if err == nil && budget.Status.DisruptionsAllowed == 0 && selector.Matches(labels.Set(pod.Labels)) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func drainObstacle(node *corev1.Node, message string) *obstacle {
	return &obstacle{
		condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonDrainBlocked, keepsTurn: true,
		message: "Node " + node.Name + " is not drained yet: " + message,
		next:    "The operator goes on when the pods are gone. A PodDisruptionBudget that allows no disruption must be changed by its owner.",
	}
}

// cordon makes the node unschedulable and notes that, and when, the operator has done so; unless a user had done so before. It returns
// when the drain began.
func (s *scope) cordon(ctx context.Context, node *corev1.Node) (time.Time, error) {
	now := s.Clock.Now()
	if noted, ours := node.Annotations[v1alpha1.AnnotationCordoned]; ours {
		since, err := time.Parse(time.RFC3339, noted)
		if err != nil || since.After(now) { // a kubelet may write to its own Node
			since = s.session.drainSince(now)
		}
		failed := s.instance.Status.FailedChange
		again := failed != nil && failed.DrainTimedOut && since.Before(failed.Time.Time)
		if node.Spec.Unschedulable && !again {
			return since, nil
		}
		if !again { // else it has all the time that the one before had
			now = since
		}
	} else if node.Spec.Unschedulable {
		return s.session.drainSince(now), nil
	}
	after := node.DeepCopy()
	after.Spec.Unschedulable = true
	setAll(&after.Annotations, map[string]string{v1alpha1.AnnotationCordoned: now.UTC().Format(time.RFC3339)})
	return now, s.patchNode(ctx, node, after)
}

// takeIntoService makes the node schedulable again if the operator had made it unschedulable, and changes nothing else of it.
func (s *scope) takeIntoService(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := s.node(ctx)
		if err != nil || node == nil {
			return err
		}
		after := node.DeepCopy()
		uncordon(after)
		return s.patchNode(ctx, node, after)
	})
}

func uncordon(node *corev1.Node) {
	if _, ours := node.Annotations[v1alpha1.AnnotationCordoned]; ours {
		delete(node.Annotations, v1alpha1.AnnotationCordoned)
		node.Spec.Unschedulable = false
	}
}
