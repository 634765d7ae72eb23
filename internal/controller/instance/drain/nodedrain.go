package drain

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Drain cordons a node and evicts the pods with their own grace periods and within the disruption budgets.
// DaemonSet pods stay, and emptyDir volumes are lost. If the pods are not evicted in time, the operator
// uncordons the node, releases the disruption slot, and retries the drain later. A node that leaves the
// cluster stays cordoned. The end of the drain is recorded on the Node, so that a node is drained once for a
// change or a restart of the host. A node without this record, for example from an earlier operator version,
// is drained with the full drainTimeout.
func (t *Disruptor) Drain(ctx context.Context, s *scope.Scope, node *corev1.Node,
	cause v1alpha1.DisruptionCause) *result.Result {
	if nodeidentity.IsDrained(node) {
		return nil // Pods that have arrived since then ignore the cordon.
	}
	if !node.Spec.Unschedulable {
		t.Events.Emit(status.DrainStartedEvent(s.Instance, node, cause))
	}
	since, err := t.Cordon(ctx, s, node)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "cordon the Node", err)
	}
	without, err := t.isDrainExcluded(ctx, s)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Machine", err)
	}
	if without {
		return t.drainWithoutEviction(ctx, s)
	}
	rest := s.Settings.DrainTimeout - t.Clock.Since(since)
	key := hostjobs.Key{Kind: hostjobs.KindDrain, Input: string(node.UID) + " " + since.UTC().Format(time.RFC3339)}
	ended, pending, err := hostjobs.Do(s.Host, key, drainInProgress(node), func(ctx context.Context, h *hostjobs.Handle) (attempt, error) {
		return t.evictAll(ctx, node.Name, rest, func() {
			h.Report(hostjobs.Step{Name: stepDrain, Detail: "evicting pods from Node " + node.Name, Waits: true})
		})
	})
	if pending != nil {
		return pending
	}
	o := ended.stopped
	switch {
	case err != nil:
		o = drainBlocked(node, err.Error())
	case o == nil:
		return t.recordDrained(ctx, ended.empty)
	}
	if t.Clock.Since(since) < s.Settings.DrainTimeout {
		return o
	}
	return t.drainTimedOut(ctx, s, node, cause, o)
}

// stepDrain is the name of the step in the status while pods are evicted.
const stepDrain = "DrainNode"

// drainInProgress returns the result that the status shows while the pods of a node are evicted.
func drainInProgress(node *corev1.Node) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonInProgress, Outcome: result.Working, HoldsSlot: true, Step: stepDrain,
		StatusDelay: drainStatusDelay, Message: "The pods of Node " + node.Name + " are evicted.",
		NextAction: "The operator waits for the step " + stepDrain + ".",
	}
}

// drainStatusDelay is the delay before the status shows a drain that has not reported an eviction.
const drainStatusDelay = time.Second

// redrainDelay is the delay before the operator repeats the drain of a node that was uncordoned meanwhile.
const redrainDelay = time.Second

// attempt is the outcome of one attempt to drain a node.
type attempt struct {
	// empty is the Node as read before its pods were listed for the last time; nil if the Node no longer
	// exists.
	empty *corev1.Node
	// stopped is the reason why the node is not drained; nil if the drain is complete.
	stopped *result.Result
}

// maxEvictionRounds is the maximum number of times that an attempt lists and evicts the pods of a node. A drain can
// be long, and a user or another operator may uncordon the node meanwhile, so that new pods arrive. Pods that
// still arrive after the last eviction ignore the cordon.
const maxEvictionRounds = 3

// evictAll evicts the pods of a node until none is left.
func (t *Disruptor) evictAll(ctx context.Context, name string, rest time.Duration, begins func()) (attempt, error) {
	began, rest := t.Clock.Now(), min(drainAttemptTimeout, rest)
	var node *corev1.Node
	for found, n := true, 0; found && n < maxEvictionRounds; n++ {
		var err error
		if node, err = t.Nodes.GetByName(ctx, name); err != nil || node == nil {
			return attempt{}, err
		}
		if !node.Spec.Unschedulable {
			return attempt{stopped: uncordonedDuringDrain(node)}, nil
		}
		var stopped *result.Result
		if found, stopped = t.Drainer.evictPods(ctx, node, rest-t.Clock.Since(began), begins); stopped != nil {
			return attempt{stopped: stopped}, nil
		}
	}
	return attempt{empty: node}, nil
}

// recordDrained records on the Node that the drain is complete. A nil Node no longer exists. If the Node has
// changed since the pods were listed, the Node may have been schedulable, and is drained again.
func (t *Disruptor) recordDrained(ctx context.Context, node *corev1.Node) *result.Result {
	if node == nil {
		return nil
	}
	if err := t.Nodes.RecordDrained(ctx, node); err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "record that the Node is drained", err)
	}
	return nil
}

// drainWithoutEviction records the drain of a node with a Machine that excludes evictions.
func (t *Disruptor) drainWithoutEviction(ctx context.Context, s *scope.Scope) *result.Result {
	node, err := t.Nodes.Get(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node != nil && !node.Spec.Unschedulable {
		return uncordonedDuringDrain(node)
	}
	return t.recordDrained(ctx, node)
}

func uncordonedDuringDrain(node *corev1.Node) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonDrainBlocked, Outcome: result.Wait, HoldsSlot: true,
		RequeueAfter: redrainDelay,
		Message:      "Node " + node.Name + " was uncordoned during the drain, so new pods may be running on it.",
		NextAction:   "The operator cordons the node and drains it again.",
	}
}

// isDrainExcluded reports whether the Machine of the node excludes the node from draining.
func (t *Disruptor) isDrainExcluded(ctx context.Context, s *scope.Scope) (bool, error) {
	machine, err := t.Machines.Get(ctx, s.Instance)
	if err != nil || machine == nil {
		return false, err
	}
	_, without := machine.Annotations[v1alpha1.AnnotationExcludeDrain]
	return without, nil
}

// drainTimedOut ends the attempt: it uncordons the node, unless the node is being removed or a user cordoned it, and
// then releases the disruption slot.
func (t *Disruptor) drainTimedOut(ctx context.Context, s *scope.Scope, node *corev1.Node, cause v1alpha1.DisruptionCause,
	blocked *result.Result) *result.Result {
	after := "The operator retries later. "
	if cause != v1alpha1.CauseRemoval {
		if err := t.Nodes.Uncordon(ctx, s.Instance); err != nil {
			return result.FromAPIError(v1alpha1.ConditionReady, "uncordon the Node", err)
		}
		after = "The node accepts pods again. "
	}
	message := fmt.Sprintf("The drain did not finish within %s: %s", s.Settings.DrainTimeout, blocked.Message)
	t.Changes.Record(s, node, v1alpha1.ReasonDrainTimedOut, message, "")
	failed := s.Instance.Status.FailedChange
	failed.Cause, failed.RolledBack, failed.DrainTimedOut = cause, true, true
	s.RequestSlotRelease()
	t.Events.Emit(status.DrainTimedOutEvent(s.Instance, node, message))
	s.Host.Close()
	return &result.Result{
		Condition: v1alpha1.ConditionUpToDate, Reason: v1alpha1.ReasonDrainTimedOut, Outcome: result.Wait,
		RequeueAfter: failed.RetryAfter.Sub(t.Clock.Now()),
		Message:      message, NextAction: after + "If a PodDisruptionBudget allows no disruption, its owner must change it.",
	}
}

// Cordon cordons the node and records on the Node the cordon and its time, unless a user has cordoned the
// node before. Cordon returns the start time of the drain.
func (t *Disruptor) Cordon(ctx context.Context, s *scope.Scope, node *corev1.Node) (time.Time, error) {
	now := t.Clock.Now()
	first := s.Session.DrainStart.IsZero()
	seen := s.Session.DrainSince(now)
	if noted, ours := node.Annotations[v1alpha1.AnnotationCordoned]; ours {
		since, err := time.Parse(time.RFC3339, noted)
		if err != nil || since.After(now) { // a kubelet may write to its own Node
			since = seen
		}
		failed := s.Instance.Status.FailedChange
		again := failed != nil && failed.DrainTimedOut && since.Before(failed.Time.Time) ||
			first && !nodes.IsDraining(node) && now.Sub(since) >= s.Settings.DrainTimeout
		if node.Spec.Unschedulable && !again {
			return since, nil
		}
		if !again { // otherwise the new drain has the full timeout
			now = since
		}
	} else if node.Spec.Unschedulable {
		return seen, nil
	}
	return now, t.Nodes.Cordon(ctx, node, now)
}
