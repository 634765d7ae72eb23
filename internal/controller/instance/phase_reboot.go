package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// rebootWanted reports whether somebody has asked for a restart of the node's host.
func rebootWanted(node *corev1.Node) bool {
	_, wanted := node.Annotations[v1alpha1.AnnotationRebootRequired]
	return wanted
}

// rebootRequested restarts the host of a node in service because an administrator has asked for it. The annotation is taken away with the
// node's release, when it was checked to work again. Which boot is to end is written down first, so that there is one restart and no
// second, whoever is killed meanwhile.
func (r *Reconciler) rebootRequested(ctx context.Context, s *scope) *obstacle {
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "read the Node", err)
	}
	requested := s.instance.Status.RequestedReboot
	if node == nil || !s.released(node) || requested == nil && !rebootWanted(node) {
		return nil
	}
	boot := s.session.facts.System.BootID
	if requested != nil && requested.BootID != boot {
		return nil // it was done; the node is checked next
	}
	// It may be long ago that the node had its turn and was drained for a restart that was not done.
	s.instance.Status.RequestedReboot = nil
	if requested != nil && !rebootWanted(node) {
		return nil // and nobody wants it any more
	}
	if o := s.acquire(ctx, node, v1alpha1.CauseReboot); o != nil {
		return o
	}
	if o := s.drainNode(ctx, node, v1alpha1.CauseReboot); o != nil {
		return o
	}
	s.instance.Status.RequestedReboot = requested
	if requested == nil {
		s.instance.Status.RequestedReboot = &v1alpha1.RequestedReboot{BootID: boot, StartedAt: metav1.NewTime(r.Clock.Now())}
		if err := s.patchStatus(ctx); err != nil {
			return apiObstacle(v1alpha1.ConditionPrepared, "note the restart", err)
		}
		s.emit(rebootBegins(s.instance, node))
	}
	line, err := s.run(ctx, verb.Reboot, "--boot-id", "boot:"+boot)
	if err != nil {
		return s.hostFailed(v1alpha1.ConditionPrepared, err)
	}
	if line.Type != verb.TypeRebooting {
		s.session.forgetHost()
		s.Hosts.Close(s.instance.Name)
		return &obstacle{
			condition: v1alpha1.ConditionPrepared, reason: v1alpha1.ReasonInProgress, outcome: wait, keepsTurn: true, after: firstRebootPoll,
			message: "The host has restarted in the meantime.", next: "The operator looks at it again.",
		}
	}
	return s.beginRestart()
}
