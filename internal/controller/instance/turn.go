package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// giveUpTurn lets others go on when an instance that has its turn can do nothing with it: it was paused, the key is missing, its host does
// not answer. While the host is as it was, its node is in service again meanwhile.
func (s *scope) giveUpTurn(ctx context.Context, p phase, o *obstacle) *obstacle {
	if o.keepsTurn || o.outcome == nothingToDo || s.silent {
		return o
	}
	if p.asksHost {
		s.session.unanswered = true
	}
	switch s.instance.Spec.DesiredState {
	case v1alpha1.DesiredStateNode:
	case v1alpha1.DesiredStateRemoved:
		if !p.letsOthersGoFirst {
			return o // a node on its way out stays unschedulable
		}
	default:
		return o
	}
	held, err := s.Gate.Holds(ctx, s.instance.Name)
	if err != nil || !held || !s.hostAsItWas() {
		return o
	}
	node, err := s.node(ctx)
	if err != nil {
		return o // the next pass does it
	}
	if failed := s.standAside(ctx, node); failed != nil {
		failed.phase = o.phase
		return failed
	}
	return o
}

// hostAsItWas reports whether nothing was done to the host since its node was proven.
func (s *scope) hostAsItWas() bool {
	return s.instance.Status.SpecDigest != "" && s.instance.Status.RequestedReboot == nil
}

// standAside takes a node into service again that was drained, while its host is as it was, and ends its turn.
func (s *scope) standAside(ctx context.Context, node *corev1.Node) *obstacle {
	if !s.hostAsItWas() {
		return nil
	}
	if node != nil {
		if _, ours := node.Annotations[v1alpha1.AnnotationCordoned]; ours {
			if err := s.takeIntoService(ctx); err != nil {
				return apiObstacle(v1alpha1.ConditionUpToDate, "make the Node schedulable again", err)
			}
		}
	}
	return s.leaveGate(ctx)
}
