package instance

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/disturbance"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// gatePoll is how often an instance that waits for a place asks again, and gateRest for anything else, besides when something is seen to
// change.
const (
	gatePoll = time.Minute
	gateRest = 10 * time.Minute
)

// rebootTurn is what session.turn is for a restart that was asked for.
const rebootTurn = "reboot"

// awaitTurn asks for the node to be disturbed before the host is contacted, where it is known that it will be: a restart was asked for, or
// the agent has said so of this very spec. While the turn does not come, there is no connection to the host. The node goes on until the host
// has answered; one that did not answer last takes up no place before it does.
func (r *Reconciler) awaitTurn(ctx context.Context, s *scope) *obstacle {
	if s.session.unanswered {
		return nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.released(node) {
		return nil
	}
	turn, cause := "", v1alpha1.DisruptionCause("")
	switch {
	case rebootWanted(node) && s.instance.Status.RequestedReboot == nil:
		turn, cause = rebootTurn, v1alpha1.CauseReboot
	case s.session.turn != "":
		spec, err := s.desired(node.Annotations[v1alpha1.AnnotationPodSubnet])
		if err != nil || spec.Digest() != s.session.turn {
			s.session.turn = ""
			return nil
		}
		turn, cause = spec.Digest(), s.causeOfChange(node)
	default:
		return nil
	}
	if o := s.acquire(ctx, node, cause); o != nil {
		s.session.forgetHost()
		r.Hosts.Close(s.instance.Name)
		s.session.turn = turn
		return o
	}
	return nil
}

// passGate asks what the agent would do to a node that is in service. What pods do not feel is done at once; what they feel waits until its
// turn comes, and until the node is drained.
func (s *scope) passGate(ctx context.Context, spec nodespec.NodeSpec, arguments []string) *obstacle {
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.released(node) {
		return nil
	}
	if s.session.turn != spec.Digest() {
		line, err := s.run(ctx, verb.Plan, arguments...)
		if err != nil {
			return s.hostFailed(v1alpha1.ConditionUpToDate, err)
		}
		if len(line.Result.Plan.Steps) > 0 && s.replaced(node) {
			return s.awaitsReplacement()
		}
		if !slices.ContainsFunc(line.Result.Plan.Steps, disturbs) {
			return nil
		}
	}
	cause := s.causeOfChange(node)
	if o := s.acquire(ctx, node, cause); o != nil {
		s.session.turn = spec.Digest()
		s.session.forgetHost()
		s.Hosts.Close(s.instance.Name)
		return o
	}
	return s.drainNode(ctx, node, cause)
}

// acquire asks the gate; nil means that the node may be disturbed.
func (s *scope) acquire(ctx context.Context, node *corev1.Node, cause v1alpha1.DisruptionCause) *obstacle {
	held, err := s.Gate.Holds(ctx, s.instance.Name)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "see whether the node is being disturbed", err)
	}
	if held && cause == v1alpha1.CauseRepair && s.countsNoMore(node) {
		return nil
	}
	if !held {
		if o := s.awaitRetry(node, cause); o != nil {
			return o
		}
	}
	decision, err := s.Gate.Acquire(ctx, disturbance.Request{
		Instance: s.instance.Name, UID: s.instance.UID, Cause: cause, Version: s.Version,
	})
	if err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "ask whether the node may be disturbed", err)
	}
	if decision.Allowed {
		return nil
	}
	if o := s.standAside(ctx, node); o != nil {
		return o
	}
	after := gateRest
	if decision.WaitsForPlace() {
		after = gatePoll
	}
	return &obstacle{
		condition: v1alpha1.ConditionUpToDate, reason: decision.Reason, outcome: wait, atGate: true, after: cmp.Or(decision.After, after),
		message: decision.Message, next: "The node goes on as it is. The operator changes it when its turn comes.",
	}
}

// countsNoMore reports whether a node has not worked for so long that the change which it had its turn for has failed. It is worked on all the
// same, but not in another's place.
func (s *scope) countsNoMore(node *corev1.Node) bool {
	since, _ := notReadySince(node)
	return !isReady(node) && s.Clock.Since(since) >= s.settings.FailureDeadline
}

// leaveGate ends the disturbance of the node, if there is one, also if it was begun by an operator that has ended since.
func (s *scope) leaveGate(ctx context.Context) *obstacle {
	s.session.turn, s.session.drains = "", time.Time{}
	err := s.Gate.Release(ctx, s.instance.Name)
	if err == nil {
		err = s.endOfAnother(ctx)
	}
	if err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "note that the node is disturbed no more", err)
	}
	return nil
}

// endOfAnother ends a disturbance that another operator has begun, by taking it over first.
func (s *scope) endOfAnother(ctx context.Context) error {
	held, err := s.Gate.Holds(ctx, s.instance.Name)
	if err != nil || !held {
		return err
	}
	if _, err := s.Gate.Acquire(ctx, disturbance.Request{Instance: s.instance.Name, UID: s.instance.UID, Cause: v1alpha1.CauseRepair, Version: s.Version}); err != nil {
		return err
	}
	return s.Gate.Release(ctx, s.instance.Name)
}

// causeOfChange says why a node in service is changed.
func (s *scope) causeOfChange(node *corev1.Node) v1alpha1.DisruptionCause {
	outdated := node.Annotations[v1alpha1.AnnotationVersion] != s.Version
	switch {
	// Another version is no repair of a host that is as the one before has left it: a pause and the first node's failure hold for it too.
	case outdated && (isReady(node) || s.instance.Status.SpecDigest != ""):
		return v1alpha1.CauseUpgrade
	case !isReady(node):
		return v1alpha1.CauseRepair
	}
	return v1alpha1.CauseConfiguration
}

func disturbs(step plan.Step) bool { return step.DisturbsPods || step.Reboots }
