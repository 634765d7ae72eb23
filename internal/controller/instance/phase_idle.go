package instance

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// nodeNotReadyGrace is how long a node may be NotReady before the operator looks at its host: a reboot by hand or a restarted kubelet
// mends itself, and so does most of what the agent repairs.
const nodeNotReadyGrace = 2 * time.Minute

// stopIfNothingToDo ends the reconcile of a host that is as it should be, without a connection to it.
func (r *Reconciler) stopIfNothingToDo(ctx context.Context, s *scope) *obstacle {
	if s.instance.Status.SpecDigest == "" || s.nodeName() == "" {
		return nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !s.released(node) {
		return nil
	}
	changed := s.changePending(node) || rebootWanted(node) || s.instance.Status.RequestedReboot != nil
	s.works = isReady(node)
	if s.instance.Status.PublicKeyHash != s.key.Hash() {
		s.keyDiffers = s.works
		s.onlyKeyDiffers = s.keyDiffers && !changed
		return nil
	}
	if changed {
		return nil
	}
	if s.works {
		if err := s.markNode(ctx, node); err != nil {
			return apiObstacle(v1alpha1.ConditionReady, "annotate the Node", err)
		}
		return s.nothingToDo(ctx)
	}
	return r.graceForNotReady(node)
}

// nothingToDo ends the reconcile of a host that is what it should be.
func (s *scope) nothingToDo(ctx context.Context) *obstacle {
	if o := cmp.Or(s.leaveGate(ctx), s.takeRetry(ctx)); o != nil {
		return o
	}
	if s.renewal != nil {
		s.passWhatHeld()
		return s.renewal
	}
	s.passWhatHeld()
	s.pass(v1alpha1.ConditionUpToDate, "The host is what version "+s.Version+" of the operator wants it to be.")
	s.instance.Status.Version, s.instance.Status.FailedChange = s.Version, nil
	return &obstacle{outcome: nothingToDo}
}

// passWhatHeld makes the conditions True again that an obstacle before the connection has made False: it is gone, and the host was not
// touched since they held.
func (s *scope) passWhatHeld() {
	for _, condition := range way {
		if !meta.IsStatusConditionTrue(s.instance.Status.Conditions, condition) {
			s.pass(condition, "It was so when the operator last worked on the host.")
		}
	}
}

// graceForNotReady waits a while before a NotReady node is looked at over SSH.
func (r *Reconciler) graceForNotReady(node *corev1.Node) *obstacle {
	since, message := notReadySince(node)
	rest := nodeNotReadyGrace - r.Clock.Since(since)
	if rest <= 0 {
		return nil
	}
	return &obstacle{
		condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonNodeNotReady, outcome: wait, after: rest,
		message: fmt.Sprintf("Node %s is not Ready since %s: %s", node.Name, since.UTC().Format(time.RFC3339), message),
		next:    "The agent on the host repairs what it can; the operator looks at the host if the node is not Ready within two minutes.",
	}
}

func notReadySince(node *corev1.Node) (time.Time, string) {
	if ready := readyCondition(node); ready != nil {
		return ready.LastTransitionTime.Time, ready.Message
	}
	return node.CreationTimestamp.Time, "it has not reported yet"
}

// released reports whether the node was handed to the scheduler before.
func (s *scope) released(node *corev1.Node) bool {
	return node.Annotations[v1alpha1.AnnotationInstance] == s.instance.Name && !unproven(node)
}

// changePending reports whether the host must be brought to another spec than the one it was brought to last. What cannot be computed
// without the host counts as pending.
func (s *scope) changePending(node *corev1.Node) bool {
	spec, err := s.desired(node.Annotations[v1alpha1.AnnotationPodSubnet])
	return err != nil || spec.Digest() != s.instance.Status.SpecDigest
}

// node reads the instance's Node; nil when it is not there, or has no name yet. Not from the cache: what the operator has just written to it decides whether
// the host is left alone.
func (s *scope) node(ctx context.Context) (*corev1.Node, error) {
	if s.nodeName() == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	err := s.Live.Get(ctx, types.NamespacedName{Name: s.nodeName()}, node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Node %s: %w", s.nodeName(), err)
	}
	return node, nil
}

// unproven reports whether a Node has our start-up taint: it was not checked to work yet.
func unproven(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == v1alpha1.TaintNotReady {
			return true
		}
	}
	return false
}

// conflictDelay is how soon a write is tried again that another's has overtaken.
const conflictDelay = 200 * time.Millisecond

// apiObstacle is a request to the API server that failed.
func apiObstacle(condition, what string, err error) *obstacle {
	if apierrors.IsConflict(err) {
		return &obstacle{
			condition: condition, reason: v1alpha1.ReasonWaiting, outcome: wait, keepsTurn: true, after: conflictDelay,
			message: "Somebody else has changed the same object at the same time.", next: "The operator tries again at once.",
		}
	}
	return &obstacle{
		condition: condition, reason: v1alpha1.ReasonAPIRequestFailed, keepsTurn: true,
		message: "Could not " + what + ": " + err.Error(), err: err,
		next: "Nothing is to be done if the API server is busy; a refusal names the missing permission.",
	}
}
