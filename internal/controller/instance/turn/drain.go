package turn

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Drain makes a node unschedulable and evicts its pods with their own grace periods, honoring their budgets. DaemonSet
// pods stay, emptyDir volumes are given up. If the pods do not leave in time, the node takes pods again and gives up
// its turn; the drain is tried again later. A node that leaves the cluster stays unschedulable. The end of the drain is
// recorded on the Node: a node whose host is changed or restarted is drained once. A node without the record, of an
// earlier version of the operator for example, is drained with the full drainTimeout.
func (t *Turn) Drain(ctx context.Context, s *scope.Scope, node *corev1.Node,
	cause v1alpha1.DisruptionCause) *obstacle.Obstacle {
	if nodeidentity.Drained(node) {
		return nil // Pods that have come since came in spite of the cordon.
	}
	if !node.Spec.Unschedulable {
		t.Events.Emit(event.NodeDrains(s.Instance, node, cause))
	}
	since, err := t.Cordon(ctx, s, node)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionReady, "make the Node unschedulable", err)
	}
	without, err := t.undrained(ctx, s)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionReady, "read the Machine", err)
	}
	if without {
		_, err := t.recordDrained(ctx, s)
		return drainUnrecorded(err)
	}
	o := t.Drainer.Evict(ctx, node, s.Settings.DrainTimeout-t.Clock.Since(since), func() {
		t.Status.Step(ctx, s, "DrainNode", "evicting pods from Node "+node.Name)
	})
	if o == nil {
		done, err := t.recordDrained(ctx, s)
		if done || err != nil {
			return drainUnrecorded(err)
		}
		o = madeSchedulable(node)
	}
	if t.Clock.Since(since) < s.Settings.DrainTimeout {
		return o
	}
	return t.drainTimedOut(ctx, s, node, cause, o)
}

// drainAgain is when a node is drained again that was made schedulable meanwhile.
const drainAgain = time.Second

// recordDrained records on the Node that its pods have left, and reports whether it is drained. Pods can take long to
// leave: a user may have made the node schedulable meanwhile, or another operator with another purpose, and other pods
// have come.
func (t *Turn) recordDrained(ctx context.Context, s *scope.Scope) (bool, error) {
	node, err := t.Nodes.Of(ctx, s.Instance)
	if err != nil || node == nil {
		return err == nil, err
	}
	if !node.Spec.Unschedulable {
		return false, nil
	}
	return true, t.Nodes.RecordDrained(ctx, node)
}

// drainUnrecorded returns the obstacle of a drain whose end could not be recorded; nil for no error.
func drainUnrecorded(err error) *obstacle.Obstacle {
	if err == nil {
		return nil
	}
	return obstacle.API(v1alpha1.ConditionReady, "record that the Node is drained", err)
}

func madeSchedulable(node *corev1.Node) *obstacle.Obstacle {
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonDrainBlocked, Outcome: obstacle.Wait, KeepsTurn: true,
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
	blocked *obstacle.Obstacle) *obstacle.Obstacle {
	after := "The operator tries again later. "
	if cause != v1alpha1.CauseRemoval {
		if err := t.Nodes.TakeIntoService(ctx, s.Instance); err != nil {
			return obstacle.API(v1alpha1.ConditionReady, "make the Node schedulable again", err)
		}
		after = "The node takes pods again as before. "
	}
	message := fmt.Sprintf("The pods of the node did not leave within %s: %s", s.Settings.DrainTimeout, blocked.Message)
	t.Changes.Note(s, node, v1alpha1.ReasonDrainTimedOut, message, "")
	failed := s.Instance.Status.FailedChange
	failed.Cause, failed.RolledBack, failed.DrainTimedOut = cause, true, true
	if o := t.Leave(ctx, s); o != nil {
		return o
	}
	t.Events.Emit(event.DrainGivenUp(s.Instance, node, message))
	t.Link.Close(s)
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionUpToDate, Reason: v1alpha1.ReasonDrainTimedOut, Outcome: obstacle.Wait,
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
