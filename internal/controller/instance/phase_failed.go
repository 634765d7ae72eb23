package instance

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const (
	// changeAttempts is how often a change of a node in service is tried before the node is brought back to what it was.
	changeAttempts = 3
	// lastChangeRetry is the longest time between two attempts after the node was brought back.
	lastChangeRetry = 24 * time.Hour
)

// remindFailure keeps a node as it is whose last change has failed, until the change is another one, the time for the next attempt has
// come, or an administrator asks for it.
func (r *Reconciler) remindFailure(ctx context.Context, s *scope) *obstacle {
	failed := s.instance.Status.FailedChange // of which an administrator may want to hear no more
	if o := s.takeRetry(ctx); o != nil {
		return o
	}
	if s.instance.Status.FailedChange == nil || s.nodeName() == "" {
		return nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.released(node) {
		return nil
	}
	if !s.sameChange(node, failed) {
		if s.otherChange(node, failed) {
			s.instance.Status.FailedChange = nil // what failed is not wanted any more
		}
		return nil
	}
	if !failed.RolledBack || failed.RetryAfter == nil || !failed.RetryAfter.After(r.Clock.Now()) {
		return nil // it is still on its way back, or its time has come
	}
	if !isReady(node) {
		return r.graceForNotReady(node) // that mends itself mostly; what has failed is no cure for it
	}
	if _, cordoned := node.Annotations[v1alpha1.AnnotationCordoned]; cordoned {
		if err := s.takeIntoService(ctx); err != nil {
			return apiObstacle(v1alpha1.ConditionUpToDate, "make the Node schedulable again", err)
		}
	}
	s.works = true
	s.passWhatHeld()
	reason := v1alpha1.ReasonChangeFailed
	if failed.DrainTimedOut {
		reason = failed.Reason
	}
	if o := s.leaveGate(ctx); o != nil {
		return o
	}
	return &obstacle{
		condition: v1alpha1.ConditionUpToDate, reason: reason, outcome: wait, after: failed.RetryAfter.Sub(r.Clock.Now()), message: failed.Message,
		next: "The node goes on as it was. The operator tries again at " + failed.RetryAfter.UTC().Format(time.RFC3339) + ", " + s.retryHint(),
	}
}

// takeRetry forgets the failure when an administrator has asked for another attempt.
func (s *scope) takeRetry(ctx context.Context) *obstacle {
	if _, asked := s.instance.Annotations[v1alpha1.AnnotationRetry]; !asked {
		return nil
	}
	s.instance.Status.FailedChange = nil
	if err := s.patchStatus(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "forget the failed change", err)
	}
	after := s.instance.DeepCopy()
	delete(after.Annotations, v1alpha1.AnnotationRetry)
	if err := s.Client.Patch(ctx, after, client.MergeFrom(s.instance)); client.IgnoreNotFound(err) != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "take the annotation "+v1alpha1.AnnotationRetry+" away", err)
	}
	s.instance.Annotations, s.instance.ResourceVersion = after.Annotations, after.ResourceVersion
	s.original.Annotations, s.original.ResourceVersion = after.Annotations, after.ResourceVersion
	return nil
}

// sameChange reports whether a failure is that of what the host is to be now.
func (s *scope) sameChange(node *corev1.Node, failed *v1alpha1.FailedChange) bool {
	switch failed.Cause {
	case v1alpha1.CauseReboot:
		return rebootWanted(node)
	case v1alpha1.CauseRemoval:
		return false // it is to be a node again
	}
	spec, err := s.desired(node.Annotations[v1alpha1.AnnotationPodSubnet])
	return err == nil && failed.Version == s.Version && failed.SpecDigest == spec.Digest()
}

// otherChange reports whether what has failed is certainly not what is wanted now.
func (s *scope) otherChange(node *corev1.Node, failed *v1alpha1.FailedChange) bool {
	_, err := s.desired(node.Annotations[v1alpha1.AnnotationPodSubnet])
	return err == nil && !s.sameChange(node, failed)
}

// countFailure looks at an obstacle that a change of a node in service has met. After some attempts the change has failed: where the host
// still has what it was before, it is brought back to that.
func (r *Reconciler) countFailure(ctx context.Context, s *scope, o *obstacle) *obstacle {
	if s.instance.Spec.DesiredState != v1alpha1.DesiredStateNode || o.outcome != changeFailed {
		return o
	}
	node, err := s.node(ctx)
	if err != nil || node == nil || !s.released(node) || s.instance.Status.SpecDigest != "" {
		return o
	}
	s.session.changeFailures++
	if s.session.changeFailures < changeAttempts {
		return o
	}
	s.session.changeFailures = 0
	if s.session.fallback == "" {
		s.noteNoWayBack(node, o)
		return o
	}
	s.noteFailure(node, o.reason, o.message, s.session.fallback)
	s.emit(changeHasFailed(s.instance, node, o))
	if err := s.patchStatus(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "note that the change has failed", err)
	}
	return &obstacle{
		phase: o.phase, condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonChangeFailedNotRolledBack, outcome: wait, keepsTurn: true, after: firstRetryDelay,
		message: "The change has failed: " + o.message, next: "The operator brings the host back to what it was before.",
	}
}

// noteNoWayBack writes down that a change has failed of a host that cannot be brought back: others are not to follow it. It is tried on.
func (s *scope) noteNoWayBack(node *corev1.Node, o *obstacle) {
	if failed := s.instance.Status.FailedChange; failed != nil && !failed.RolledBack && s.sameChange(node, failed) && failed.RetryAfter.After(s.Clock.Now()) {
		return
	}
	s.noteFailure(node, o.reason, o.message, "")
	s.emit(changeHasFailed(s.instance, node, o))
}

// awaitRetry keeps a node that works, and whose change has failed without a way back, from taking up a place again at once.
func (s *scope) awaitRetry(node *corev1.Node, cause v1alpha1.DisruptionCause) *obstacle {
	failed := s.instance.Status.FailedChange
	if failed == nil || failed.RolledBack || failed.RetryAfter == nil || cause != failed.Cause || !isReady(node) || !s.sameChange(node, failed) {
		return nil
	}
	rest := failed.RetryAfter.Sub(s.Clock.Now())
	if rest <= 0 {
		return nil
	}
	return &obstacle{
		condition: v1alpha1.ConditionUpToDate, reason: v1alpha1.ReasonChangeFailed, outcome: wait, after: rest, message: failed.Message,
		next: "The operator tries again at " + failed.RetryAfter.UTC().Format(time.RFC3339) + ", " + s.retryHint(),
	}
}

// retryHint is how an administrator has a change that has failed tried again.
func (s *scope) retryHint() string {
	return "or at once: kubectl annotate windowsinstance " + s.instance.Name + " -n " + s.Namespace + " " + v1alpha1.AnnotationRetry + "=now"
}

// noteFailure writes down that a change has failed. previous is what the host can be brought back to.
func (s *scope) noteFailure(node *corev1.Node, reason, message, previous string) {
	before := ptr.Deref(s.instance.Status.FailedChange, v1alpha1.FailedChange{})
	cause := s.causeOfChange(node)
	if cause == v1alpha1.CauseRepair && node.Annotations[v1alpha1.AnnotationVersion] != s.Version {
		cause = v1alpha1.CauseUpgrade // it does not work because of what was changed
	}
	failed := &v1alpha1.FailedChange{
		Cause: cause, Version: s.Version, PreviousDigest: previous, Reason: reason, Message: plain(message, longestMessage),
		Time: metav1.NewTime(s.Clock.Now()), Attempts: 1,
	}
	if spec, err := s.desired(node.Annotations[v1alpha1.AnnotationPodSubnet]); err == nil {
		failed.SpecDigest = spec.Digest()
	}
	if before.Version == failed.Version && before.SpecDigest == failed.SpecDigest {
		failed.Attempts = before.Attempts + 1
	}
	failed.RetryAfter = ptr.To(metav1.NewTime(s.Clock.Now().Add(changeRetry(s.settings.FailureDeadline, failed.Attempts))))
	s.instance.Status.FailedChange = failed
}

// changeRetry is the time before the next attempt of a change that has failed so often.
func changeRetry(first time.Duration, attempts int32) time.Duration {
	delay := first
	for i := int32(1); i < attempts && delay < lastChangeRetry; i++ {
		delay *= 2
	}
	return min(delay, lastChangeRetry)
}
