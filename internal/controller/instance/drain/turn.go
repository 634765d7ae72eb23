// Package drain drains a node in service before its host is changed: it acquires the disruption slot of the gate, cordons the
// node, evicts its pods with kubectl's drain library, and releases a slot that cannot be used. It does not decide on changes.
package drain

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/rollback"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/text"
)

// gatePoll is how often an instance that waits for other nodes asks again, and gateRest one that waits for anything else,
// besides when something is seen to change.
const (
	gatePoll = time.Minute
	gateRest = 10 * time.Minute
)

// Turn asks the gate before a node in service is disturbed, and drains it when its turn has come.
type Turn struct {
	Gate     disruption.Gate
	Nodes    nodes.Nodes
	Machines nodes.Machines
	Drainer  Drainer
	Events   status.Recorder
	Specs    desired.Specs
	Changes  *rollback.Changes
	Clock    clock.PassiveClock
	Version  string // of the operator
}

// Prepare makes the node of a host ready for a change of the host, and reports whether the node is in service. It asks the agent for
// its plan for such a node. A plan that pods do not feel is done at once; another waits until the node has its turn and is drained.
func (t *Turn) Prepare(ctx context.Context, s *scope.Scope, spec nodespec.NodeSpec) (inService bool, o *result.Result) {
	read := t.Nodes.Recent
	if ref := s.Instance.Status.NodeRef; ref != nil && ref.UID != "" {
		read = t.Nodes.Of // whether it is in service, and drained, must be true now
	}
	node, err := read(ctx, s.Instance)
	if err != nil {
		return false, result.API(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.Released(node) {
		return false, nil
	}
	if s.Session.Turn != spec.Digest() {
		planned, pending, err := s.Host.Plan(spec, s.Session.Whole)
		if pending != nil {
			return false, pending
		}
		if err != nil {
			return false, s.Failed(v1alpha1.ConditionUpToDate, err)
		}
		if len(planned.Steps) > 0 && t.Replaced(s, node) {
			return false, t.ReplacementPending(s)
		}
		if !planned.Disturbs() {
			return true, nil
		}
	}
	if facts := s.Host.Facts; facts != nil && facts.Applied != spec.Digest() {
		t.WarnNoFallback(s, facts.NoFallback)
	}
	cause := t.Changes.CauseOf(s, node)
	if o := t.Acquire(ctx, s, node, cause); o != nil {
		s.Session.Turn = spec.Digest()
		s.Host.Close()
		return false, o
	}
	return false, t.Drain(ctx, s, node, cause)
}

// Acquire asks the gate; nil means that the node may be disturbed.
func (t *Turn) Acquire(ctx context.Context, s *scope.Scope, node *corev1.Node,
	cause v1alpha1.DisruptionCause) *result.Result {
	s.LeavesGate = false
	held, err := t.Gate.Holds(ctx, s.Instance.Name)
	if err != nil {
		return result.API(v1alpha1.ConditionUpToDate, "check for a disruption slot of the node", err)
	}
	if held && cause == v1alpha1.CauseRepair && t.countsNoMore(s, node) {
		s.Instance.Status.DisruptionPending = false
		return nil
	}
	if !held {
		if o := t.Changes.AwaitRetry(s, node, cause); o != nil {
			return o
		}
	}
	decision, err := t.Gate.Acquire(ctx, disruptionpolicy.Request{
		Instance: s.Instance.Name, UID: s.Instance.UID, Cause: cause, Version: t.Version,
		Configuration: t.Specs.Configuration(s.Cluster), Begun: !s.HostAsItWas(),
	})
	if err != nil {
		return result.API(v1alpha1.ConditionUpToDate, "acquire a disruption slot for the node", err)
	}
	if decision.Allowed {
		s.Instance.Status.DisruptionPending = false
		return nil
	}
	if o := t.StandAside(ctx, s, node); o != nil {
		return o
	}
	next := "The operator changes the node when the WindowsDisruptionPolicy allows it."
	if why := s.Session.NoFallback; why != "" {
		next += " If that fails, the host cannot be rolled back: " + text.Sentence(why)
	}
	return &result.Result{
		Condition: v1alpha1.ConditionUpToDate, Reason: decision.Reason, Outcome: result.Wait, AtGate: true,
		After:   askAgain(decision),
		Message: decision.Message, Next: next,
	}
}

// askAgain returns when an instance that was refused asks again. What time alone ends is known in advance. But other
// nodes may come back long before the time by which they must, and not all that wait are woken by that.
func askAgain(refused disruptionpolicy.Decision) time.Duration {
	if refused.StandsStill() {
		return cmp.Or(refused.After, gateRest)
	}
	return min(cmp.Or(refused.After, gatePoll), gatePoll)
}

// countsNoMore reports whether a node has not worked for so long that the change which it had its turn for has failed.
// It is worked on all the same, but not in another's place.
func (t *Turn) countsNoMore(s *scope.Scope, node *corev1.Node) bool {
	now := t.Clock.Now()
	return !nodeidentity.Ready(node) && now.Sub(nodes.NotReadySince(s.Instance, now)) >= s.Settings.FailureDeadline
}

// WarnNoFallback reports once that the host cannot be rolled back if the change fails, and why; an empty why means that
// it can.
func (t *Turn) WarnNoFallback(s *scope.Scope, why string) {
	if why != "" && why != s.Session.NoFallback {
		t.Events.Emit(status.RollbackUnavailableEvent(s.Instance, why))
	}
	s.Session.NoFallback = why
}

// Properties of a phase define how its results affect the turn of an instance.
type Properties struct {
	// AsksHost is true when a result of the phase says that the host did not answer.
	AsksHost bool
	// LetsOthersGoFirst is true when an instance that is being removed gives up its turn at a result of the phase.
	LetsOthersGoFirst bool
}

// GiveUp lets others continue when an instance cannot use its turn: it was paused, the key is missing, its host does
// not answer. If the host is unchanged, its node is in service again meanwhile.
func (t *Turn) GiveUp(ctx context.Context, s *scope.Scope, met Properties, o *result.Result) *result.Result {
	if o.KeepsTurn || o.Outcome == result.NothingToDo || s.Silent {
		return o
	}
	if met.AsksHost {
		s.Session.Unanswered = true
	}
	switch s.Instance.Spec.DesiredState {
	case v1alpha1.DesiredStateNode:
	case v1alpha1.DesiredStateRemoved:
		if !met.LetsOthersGoFirst {
			return o // a node on its way out stays unschedulable
		}
	default:
		return o
	}
	held, err := t.Gate.Holds(ctx, s.Instance.Name)
	if err != nil || !held {
		return o
	}
	node, err := t.Nodes.Of(ctx, s.Instance)
	if err != nil || !Undisturbed(s, node) {
		return o // after an error, the next reconcile does it
	}
	if failed := t.StandAside(ctx, s, node); failed != nil {
		failed.Phase = o.Phase
		return failed
	}
	return o
}

// Undisturbed reports whether nothing that needs a drained node was done to the host since its node was cordoned.
func Undisturbed(s *scope.Scope, node *corev1.Node) bool {
	return s.HostAsItWas() || node != nil && nodes.Draining(node)
}

// StandAside takes a cordoned node whose host is undisturbed into service again, and ends its turn.
func (t *Turn) StandAside(ctx context.Context, s *scope.Scope, node *corev1.Node) *result.Result {
	if !Undisturbed(s, node) {
		return nil
	}
	if node != nil && nodes.Cordoned(node) {
		if err := t.Nodes.TakeIntoService(ctx, s.Instance); err != nil {
			return result.API(v1alpha1.ConditionUpToDate, "make the Node schedulable again", err)
		}
	}
	s.LeaveGate()
	return nil
}
