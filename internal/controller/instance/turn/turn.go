// Package turn makes a node in service wait for its turn to be disturbed, then drains it, and gives up a turn that
// cannot be used. It does not decide on changes.
package turn

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/change"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/drain"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/link"
	"github.com/windows-machine-config/wmco/internal/controller/instance/machines"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/readiness"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/text"
	"github.com/windows-machine-config/wmco/internal/verb"
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
	Machines machines.Machines
	Drainer  drain.Drainer
	Link     *link.Link
	Status   status.Writer
	Events   event.Recorder
	Specs    desired.Specs
	Changes  *change.Changes
	Clock    clock.PassiveClock
	Version  string // of the operator
}

// Pass asks the agent for its plan for a node in service. Steps that pods do not feel are done at once; other steps
// wait until the node has its turn and is drained.
func (t *Turn) Pass(ctx context.Context, s *scope.Scope, spec nodespec.NodeSpec, arguments []string) *obstacle.Obstacle {
	node, err := t.Nodes.Recent(ctx, s.Instance)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.Released(node) {
		return nil
	}
	if s.Session.Turn != spec.Digest() {
		line, err := t.Link.Run(ctx, s, verb.Plan, arguments...)
		if err != nil {
			return t.Link.Failed(s, v1alpha1.ConditionUpToDate, err)
		}
		if len(line.Result.Plan.Steps) > 0 && t.Replaced(s, node) {
			return t.AwaitsReplacement(s)
		}
		if !slices.ContainsFunc(line.Result.Plan.Steps, disturbs) {
			return nil
		}
	}
	if facts := s.Session.Facts; facts != nil && facts.Applied != spec.Digest() {
		t.WarnNoFallback(s, facts.NoFallback)
	}
	cause := t.Changes.CauseOf(s, node)
	if o := t.Acquire(ctx, s, node, cause); o != nil {
		s.Session.Turn = spec.Digest()
		t.Link.Close(s)
		return o
	}
	return t.Drain(ctx, s, node, cause)
}

// WarnNoFallback reports once that the host cannot be rolled back if the change fails, and why; an empty why means that
// it can.
func (t *Turn) WarnNoFallback(s *scope.Scope, why string) {
	if why != "" && why != s.Session.NoFallback {
		t.Events.Emit(event.NoFallback(s.Instance, why))
	}
	s.Session.NoFallback = why
}

// Acquire asks the gate; nil means that the node may be disturbed.
func (t *Turn) Acquire(ctx context.Context, s *scope.Scope, node *corev1.Node,
	cause v1alpha1.DisruptionCause) *obstacle.Obstacle {
	held, err := t.Gate.Holds(ctx, s.Instance.Name)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionUpToDate, "see whether the node is being disturbed", err)
	}
	if held && cause == v1alpha1.CauseRepair && t.countsNoMore(s, node) {
		s.Instance.Status.WaitsForTurn = false
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
		return obstacle.API(v1alpha1.ConditionUpToDate, "ask whether the node may be disturbed", err)
	}
	if decision.Allowed {
		s.Instance.Status.WaitsForTurn = false
		return nil
	}
	if o := t.StandAside(ctx, s, node); o != nil {
		return o
	}
	next := "The node goes on as it is. The operator changes it when its turn comes."
	if why := s.Session.NoFallback; why != "" {
		next += " If that fails, the host cannot be rolled back: " + text.Sentence(why)
	}
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionUpToDate, Reason: decision.Reason, Outcome: obstacle.Wait, AtGate: true,
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
	return !nodeidentity.Ready(node) && now.Sub(readiness.Since(s.Instance, now)) >= s.Settings.FailureDeadline
}

// Leave ends the disturbance of the node, if this operator has one. Another operator that runs may be about to drain
// the node, and ends its own.
func (t *Turn) Leave(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	s.Session.Turn, s.Session.Drains = "", time.Time{}
	if err := t.Gate.Release(ctx, s.Instance.Name); err != nil {
		return obstacle.API(v1alpha1.ConditionUpToDate, "note that the node is disturbed no more", err)
	}
	return nil
}

func disturbs(step plan.Step) bool { return step.DisturbsPods || step.Reboots }

// Properties of a phase define how its obstacles affect the turn of an instance.
type Properties struct {
	// AsksHost is true when an obstacle of the phase says that the host did not answer.
	AsksHost bool
	// LetsOthersGoFirst is true when an instance that is being removed gives up its turn at an obstacle of the phase.
	LetsOthersGoFirst bool
}

// GiveUp lets others continue when an instance cannot use its turn: it was paused, the key is missing, its host does
// not answer. If the host is unchanged, its node is in service again meanwhile.
func (t *Turn) GiveUp(ctx context.Context, s *scope.Scope, met Properties, o *obstacle.Obstacle) *obstacle.Obstacle {
	if o.KeepsTurn || o.Outcome == obstacle.NothingToDo || s.Silent {
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
		return o // after an error, the next pass does it
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
func (t *Turn) StandAside(ctx context.Context, s *scope.Scope, node *corev1.Node) *obstacle.Obstacle {
	if !Undisturbed(s, node) {
		return nil
	}
	if node != nil && nodes.Cordoned(node) {
		if err := t.Nodes.TakeIntoService(ctx, s.Instance); err != nil {
			return obstacle.API(v1alpha1.ConditionUpToDate, "make the Node schedulable again", err)
		}
	}
	return t.Leave(ctx, s)
}
