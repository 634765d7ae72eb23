package drain

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// Await asks for the turn before it contacts the host, if a disturbance is certain: a restart was requested, or the
// agent has said so of this spec. Until the turn comes, there is no connection to the host. The node stays in service
// until the host has answered; a host that did not answer last takes up no place before it does.
func (t *Turn) Await(ctx context.Context, s *scope.Scope) *result.Result {
	if ref := s.Instance.Status.NodeRef; s.Session.Unanswered || ref == nil || ref.UID == "" {
		return nil // a host that was no node has nothing to wait for, also if it is one now: Pass asks once more
	}
	node, err := t.Nodes.Recent(ctx, s.Instance)
	if err != nil {
		return result.API(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.Released(node) {
		return nil
	}
	turn, cause := "", v1alpha1.DisruptionCause("")
	switch {
	case nodes.RebootWanted(node) && s.Instance.Status.RequestedReboot == nil:
		turn, cause = scope.RebootTurn, v1alpha1.CauseReboot
	case s.Session.Turn != "":
		spec, err := t.Specs.Of(s, node)
		if err != nil || spec.Digest() != s.Session.Turn {
			s.Session.Turn = ""
			return nil
		}
		turn, cause = spec.Digest(), t.Changes.CauseOf(s, node)
	default:
		return nil
	}
	if o := t.Acquire(ctx, s, node, cause); o != nil {
		s.Host.Close()
		s.Session.Turn = turn
		return o
	}
	return nil
}

// Replaced reports whether the Machine of a node that another version of the operator has configured must be replaced.
func (t *Turn) Replaced(s *scope.Scope, node *corev1.Node) bool {
	version := node.Annotations[v1alpha1.AnnotationVersion]
	return s.OfMachine() && s.Instance.Spec.UpgradeStrategy == v1alpha1.UpgradeReplace && version != "" &&
		version != t.Version
}

// ReplacementPending returns the wait for the turn of a Machine that must be replaced.
func (t *Turn) ReplacementPending(s *scope.Scope) *result.Result {
	if s.Works && s.Instance.Status.SpecDigest != "" {
		s.PassWhatHeld()
	}
	machine := nodes.MachineName(s.Instance.Spec.Source)
	return &result.Result{
		Condition: v1alpha1.ConditionUpToDate, Reason: v1alpha1.ReasonReplacementPending,
		Outcome: result.Wait, Replaces: true,
		Message: "The node was configured by another version of the operator, and its Machine is to be replaced: Machine " +
			machine + " is deleted when the WindowsDisruptionPolicy allows it.",
		Next: "Its MachineSet then makes another one, which this version configures. To have hosts changed in place instead: oc annotate machineset <name> -n " +
			v1alpha1.MachineNamespace + " " + v1alpha1.AnnotationUpgradeStrategy + "=" + string(v1alpha1.UpgradeInPlace),
	}
}
