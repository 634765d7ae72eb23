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

// Drain makes a node unschedulable and evicts its pods with their own grace periods, honoring their budgets. DaemonSet
// pods stay, emptyDir volumes are given up. If the pods do not leave in time, the node takes pods again and gives up
// its turn; the drain is tried again later. A node that leaves the cluster stays unschedulable. The end of the drain is
// recorded on the Node: a node whose host is changed or restarted is drained once. A node without the record, of an
// earlier version of the operator for example, is drained with the full drainTimeout.
func (t *Turn) Drain(ctx context.Context, s *scope.Scope, node *corev1.Node,
	cause v1alpha1.DisruptionCause) *result.Result {
	if nodeidentity.Drained(node) {
		return nil // Pods that have come since came in spite of the cordon.
	}
	if !node.Spec.Unschedulable {
		t.Events.Emit(status.DrainStartedEvent(s.Instance, node, cause))
	}
	since, err := t.Cordon(ctx, s, node)
	if err != nil {
		return result.API(v1alpha1.ConditionReady, "make the Node unschedulable", err)
	}
	without, err := t.undrained(ctx, s)
	if err != nil {
		return result.API(v1alpha1.ConditionReady, "read the Machine", err)
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
		o = blocked(node, err.Error())
	case o == nil:
		return t.recordDrained(ctx, ended.empty)
	}
	if t.Clock.Since(since) < s.Settings.DrainTimeout {
		return o
	}
	return t.drainTimedOut(ctx, s, node, cause, o)
}

// stepDrain is the step that an administrator sees while pods leave.
const stepDrain = "DrainNode"

// drainInProgress returns what the status says while pods leave a node.
func drainInProgress(node *corev1.Node) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonInProgress, Outcome: result.Working, KeepsTurn: true, Step: stepDrain,
		Quiet: quietDrain, Message: "The pods of Node " + node.Name + " are evicted.",
		Next: "The operator waits for the step " + stepDrain + ".",
	}
}

// quietDrain is how long a drain lasts before the status shows it, unless it reports that it evicts pods.
const quietDrain = time.Second

// drainAgain is when a node is drained again that was made schedulable meanwhile.
const drainAgain = time.Second

// attempt is the outcome of one attempt to drain a node.
type attempt struct {
	// empty is the Node as it was before its pods were listed for the last time; nil if it is gone.
	empty *corev1.Node
	// stopped is why the node is not drained; nil if it is.
	stopped *result.Result
}

// evictions is how often an attempt lists the pods of a node and evicts them. Pods can take long to leave: a user may have made the node
// schedulable meanwhile, or another operator with another purpose, and other pods have come. Pods that come again and again come in spite
// of the cordon.
const evictions = 3

// evictAll evicts the pods of a node until there are none.
func (t *Turn) evictAll(ctx context.Context, name string, rest time.Duration, begins func()) (attempt, error) {
	began, rest := t.Clock.Now(), min(drainAttempt, rest)
	var node *corev1.Node
	for found, n := true, 0; found && n < evictions; n++ {
		var err error
		if node, err = t.Nodes.Named(ctx, name); err != nil || node == nil {
			return attempt{}, err
		}
		if !node.Spec.Unschedulable {
			return attempt{stopped: madeSchedulable(node)}, nil
		}
		var stopped *result.Result
		if found, stopped = t.Drainer.evict(ctx, node, rest-t.Clock.Since(began), begins); stopped != nil {
			return attempt{stopped: stopped}, nil
		}
	}
	return attempt{empty: node}, nil
}

// recordDrained records on the Node that its pods have left; nil for a Node that is gone. If the Node has changed since they were
// listed, it may have been schedulable: it is drained again.
func (t *Turn) recordDrained(ctx context.Context, node *corev1.Node) *result.Result {
	if node == nil {
		return nil
	}
	if err := t.Nodes.RecordDrained(ctx, node); err != nil {
		return result.API(v1alpha1.ConditionReady, "record that the Node is drained", err)
	}
	return nil
}

// drainWithoutEviction records the drain of a node whose pods are not to be evicted.
func (t *Turn) drainWithoutEviction(ctx context.Context, s *scope.Scope) *result.Result {
	node, err := t.Nodes.Of(ctx, s.Instance)
	if err != nil {
		return result.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node != nil && !node.Spec.Unschedulable {
		return madeSchedulable(node)
	}
	return t.recordDrained(ctx, node)
}

func madeSchedulable(node *corev1.Node) *result.Result {
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonDrainBlocked, Outcome: result.Wait, KeepsTurn: true,
		After:   drainAgain,
		Message: "Node " + node.Name + " was made schedulable while the operator drained it, so other pods may have come.",
		Next:    "The operator makes the node unschedulable again, and drains it.",
	}
}

// undrained reports whether the Machine of the node says that it is not to be drained.
func (t *Turn) undrained(ctx context.Context, s *scope.Scope) (bool, error) {
	machine, err := t.Machines.Of(ctx, s.Instance)
	if err != nil || machine == nil {
		return false, err
	}
	_, without := machine.Annotations[v1alpha1.AnnotationExcludeDrain]
	return without, nil
}

// drainTimedOut gives up for now: the node takes pods again, unless a user wants it otherwise, and only then another's
// turn comes.
func (t *Turn) drainTimedOut(ctx context.Context, s *scope.Scope, node *corev1.Node, cause v1alpha1.DisruptionCause,
	blocked *result.Result) *result.Result {
	after := "The operator retries later. "
	if cause != v1alpha1.CauseRemoval {
		if err := t.Nodes.TakeIntoService(ctx, s.Instance); err != nil {
			return result.API(v1alpha1.ConditionReady, "make the Node schedulable again", err)
		}
		after = "The node takes pods again as before. "
	}
	message := fmt.Sprintf("The pods of the node did not leave within %s: %s", s.Settings.DrainTimeout, blocked.Message)
	t.Changes.Note(s, node, v1alpha1.ReasonDrainTimedOut, message, "")
	failed := s.Instance.Status.FailedChange
	failed.Cause, failed.RolledBack, failed.DrainTimedOut = cause, true, true
	s.LeaveGate()
	t.Events.Emit(status.DrainGivenUpEvent(s.Instance, node, message))
	s.Host.Close()
	return &result.Result{
		Condition: v1alpha1.ConditionUpToDate, Reason: v1alpha1.ReasonDrainTimedOut, Outcome: result.Wait,
		After:   failed.RetryAfter.Sub(t.Clock.Now()),
		Message: message, Next: after + "A PodDisruptionBudget that allows no disruption must be changed by its owner.",
	}
}

// Cordon makes the node unschedulable, and records that and when the operator did so, unless a user had done so before.
// It returns when the drain began.
func (t *Turn) Cordon(ctx context.Context, s *scope.Scope, node *corev1.Node) (time.Time, error) {
	now := t.Clock.Now()
	first := s.Session.Drains.IsZero()
	seen := s.Session.DrainSince(now)
	if noted, ours := node.Annotations[v1alpha1.AnnotationCordoned]; ours {
		since, err := time.Parse(time.RFC3339, noted)
		if err != nil || since.After(now) { // a kubelet may write to its own Node
			since = seen
		}
		failed := s.Instance.Status.FailedChange
		again := failed != nil && failed.DrainTimedOut && since.Before(failed.Time.Time) ||
			first && !nodes.Draining(node) && now.Sub(since) >= s.Settings.DrainTimeout
		if node.Spec.Unschedulable && !again {
			return since, nil
		}
		if !again { // else it has all the time that the one before had
			now = since
		}
	} else if node.Spec.Unschedulable {
		return seen, nil
	}
	return now, t.Nodes.Cordon(ctx, node, now)
}
