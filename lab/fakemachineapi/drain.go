package fakemachineapi

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/drain"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// unreachableGracePeriod is the time after the deadline of a terminating pod until a drain ignores the pod on an
	// unreachable Node.
	unreachableGracePeriod = 5 * time.Minute
	// unreachableGraceSeconds is the grace period of a pod on an unreachable Node, where no kubelet would honor
	// the pod's own period.
	unreachableGraceSeconds = 1
)

// drainNode drains the Node of a deleted Machine; true if the drain is complete or not needed. Each call evicts the
// pods that may be evicted and does not wait, so that Machines do not block each other.
func (r *machineReconciler) drainNode(ctx context.Context, m *machinev1.Machine) (bool, error) {
	if isConditionTrue(m.Status.Conditions, machinev1.MachineDrained) {
		return true, nil
	}
	if _, excluded := m.Annotations[annotationExcludeDraining]; excluded || m.Status.NodeRef == nil {
		return true, r.recordDrain(ctx, m, trueCondition(machinev1.MachineDrained, "Node drain skipped"))
	}
	if free, err := r.hasNoHooks(ctx, m, machinev1.MachineDrainable, "pre-drain",
		m.Spec.LifecycleHooks.PreDrain); err != nil || !free {
		return false, err
	}
	node := &corev1.Node{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node); apierrors.IsNotFound(err) {
		return true, r.recordDrain(ctx, m, trueCondition(machinev1.MachineDrained, "Node is gone"))
	} else if err != nil {
		return false, err
	}
	left, err := r.evictPods(ctx, node)
	if err != nil {
		left = err.Error()
	}
	if left != "" {
		return false, r.recordDrain(ctx, m, falseCondition(machinev1.MachineDrained, machinev1.ConditionSeverityWarning,
			machinev1.MachineDrainError,
			"could not drain machine: "+left))
	}
	return true, r.recordDrain(ctx, m, trueCondition(machinev1.MachineDrained, "Drain finished successfully"))
}

func (r *machineReconciler) recordDrain(ctx context.Context, m *machinev1.Machine, c machinev1.Condition) error {
	before := m.DeepCopy()
	setCondition(&m.Status.Conditions, r.Clock.Now(), c)
	if equality.Semantic.DeepEqual(before.Status.Conditions, m.Status.Conditions) {
		return nil
	}
	reason := "DrainRequeued"
	if c.Status == corev1.ConditionTrue {
		reason = "DrainSucceeded"
	}
	r.events.Eventf(m, nil, corev1.EventTypeNormal, reason, "Drain", "%s", c.Message)
	return r.saveMachine(ctx, before, m)
}

// evictPods cordons the Node, evicts its pods, and returns the remaining pods with the reasons.
func (r *machineReconciler) evictPods(ctx context.Context, node *corev1.Node) (string, error) {
	helper := &drain.Helper{
		Ctx: ctx, Client: r.clientset, Force: true, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true,
		DeleteEmptyDirData: true,
		Out:                io.Discard, ErrOut: io.Discard,
	}
	if isUnreachable(node) {
		helper.GracePeriodSeconds = unreachableGraceSeconds
		helper.AdditionalFilters = []drain.PodFilter{skipOverduePods(r.Clock.Now())}
	}
	if err := drain.RunCordonOrUncordon(helper, node, true); err != nil {
		return "", fmt.Errorf("make Node %s unschedulable: %w", node.Name, err)
	}
	eviction, err := drain.CheckEvictionSupport(r.clientset)
	if err != nil {
		return "", err
	}
	list, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return "", fmt.Errorf("list the pods of Node %s: %v", node.Name, errs)
	}
	var left []string
	for _, pod := range list.Pods() {
		state := "is terminating"
		if pod.DeletionTimestamp.IsZero() || hasLongerGracePeriod(&pod, helper.GracePeriodSeconds) {
			if err := helper.EvictPod(pod, eviction); apierrors.IsNotFound(err) {
				continue
			} else if err != nil {
				state = "cannot be evicted: " + err.Error()
			}
		}
		left = append(left, pod.Namespace+"/"+pod.Name+" "+state)
	}
	return strings.Join(left, "; "), nil
}

// hasLongerGracePeriod reports whether a terminating pod has a longer grace period than the drain allows; a negative
// value allows the pod's own period.
func hasLongerGracePeriod(pod *corev1.Pod, seconds int) bool {
	return seconds >= 0 && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds > int64(seconds)
}

// isUnreachable reports whether the heartbeat of the kubelet is overdue, so that pods never end.
func isUnreachable(node *corev1.Node) bool {
	ready := nodeCondition(node, corev1.NodeReady)
	return ready != nil && ready.Status == corev1.ConditionUnknown
}

// skipOverduePods returns a filter that skips pods that should have ended long ago.
func skipOverduePods(now time.Time) drain.PodFilter {
	return func(pod corev1.Pod) drain.PodDeleteStatus {
		if pod.DeletionTimestamp != nil && pod.DeletionTimestamp.Add(unreachableGracePeriod).Before(now) {
			return drain.MakePodDeleteStatusSkip()
		}
		return drain.MakePodDeleteStatusOkay()
	}
}
