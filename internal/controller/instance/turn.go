package instance

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// giveUpTurn lets others go on when an instance that has its turn can do nothing with it: it was paused, the key is missing, its host does
// not answer. While the host is as it was, its node is in service again meanwhile.
func (s *scope) giveUpTurn(ctx context.Context, o *obstacle) *obstacle {
	if goesOnSoon(o) || s.silent {
		return o
	}
	switch o.phase {
	case "reach", "inspect":
		s.session.unanswered = true
	}
	switch s.instance.Spec.DesiredState {
	case v1alpha1.DesiredStateNode:
	case v1alpha1.DesiredStateRemoved:
		if o.phase != "pause" && o.phase != "key" {
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

// goesOnSoon tells whether an obstacle belongs to the work on a node that has its turn, or passes by itself.
func goesOnSoon(o *obstacle) bool {
	return o.done || slices.Contains([]string{
		v1alpha1.ReasonDrainBlocked, v1alpha1.ReasonAPIRequestFailed, v1alpha1.ReasonWaiting, v1alpha1.ReasonRebooting, v1alpha1.ReasonInProgress,
		v1alpha1.ReasonChangeFailedForNow,
		// A verb of an earlier connection, or of another operator, is at work: the host is not as it was.
		string(verb.ReasonBusy),
	}, o.reason)
}

// hostAsItWas tells whether nothing was done to the host since its node was proven.
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
