package rollback

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/text"
)

// Changes is the record of failed changes: FailedChange in the status of instances.
type Changes struct {
	Specs     desired.Specs
	Clock     clock.PassiveClock
	Namespace string // of the instances
	Version   string // of the operator
}

// CauseOf says why a node in service is changed.
func (c *Changes) CauseOf(s *scope.Scope, node *corev1.Node) v1alpha1.DisruptionCause {
	outdated := node.Annotations[v1alpha1.AnnotationVersion] != c.Version
	switch {
	// Another version is no repair of a host that is as the one before has left it: a pause and the first node's
	// failure hold for it too.
	case outdated && (nodeidentity.Ready(node) || s.Instance.Status.SpecDigest != ""):
		return v1alpha1.CauseUpgrade
	case !nodeidentity.Ready(node):
		return v1alpha1.CauseRepair
	}
	return v1alpha1.CauseConfiguration
}

// Same reports whether a failure belongs to the change that is wanted now.
func (c *Changes) Same(s *scope.Scope, node *corev1.Node, failed *v1alpha1.FailedChange) bool {
	switch failed.Cause {
	case v1alpha1.CauseReboot:
		return nodes.RebootWanted(node)
	case v1alpha1.CauseRemoval:
		return false // it is to be a node again
	}
	spec, err := c.Specs.Of(s, node)
	return err == nil && failed.Version == c.Version && failed.SpecDigest == spec.Digest()
}

// Other reports whether a failure certainly belongs to another change than the one that is wanted now, and no other
// node is to wait for it. A failure of the settings that are still wanted counts for the others until the node has
// them, whatever else of its host is to be changed.
func (c *Changes) Other(s *scope.Scope, node *corev1.Node, failed *v1alpha1.FailedChange) bool {
	_, err := c.Specs.Of(s, node)
	return err == nil && !c.Same(s, node, failed) && !c.sameSettings(s, failed)
}

func (c *Changes) sameSettings(s *scope.Scope, failed *v1alpha1.FailedChange) bool {
	brings := failed.Cause == v1alpha1.CauseUpgrade || failed.Cause == v1alpha1.CauseConfiguration
	return brings && !failed.DrainTimedOut && failed.Version == c.Version && failed.ConfigurationDigest != "" &&
		failed.ConfigurationDigest == c.Specs.Configuration(s.Cluster)
}

// AwaitRetry keeps a working node whose change has failed without a rollback from taking up a place again at once.
func (c *Changes) AwaitRetry(s *scope.Scope, node *corev1.Node, cause v1alpha1.DisruptionCause) *result.Result {
	failed := s.Instance.Status.FailedChange
	if failed == nil || failed.RolledBack || failed.RetryAfter == nil || cause != failed.Cause || !nodeidentity.Ready(node) || !c.Same(s, node, failed) {
		return nil
	}
	rest := failed.RetryAfter.Sub(c.Clock.Now())
	if rest <= 0 {
		return nil
	}
	return &result.Result{
		Condition: v1alpha1.ConditionUpToDate, Reason: v1alpha1.ReasonChangeFailed, Outcome: result.Wait, After: rest,
		Message: failed.Message,
		Next:    "The operator retries at " + failed.RetryAfter.UTC().Format(time.RFC3339) + ", " + c.RetryHint(s),
	}
}

// RetryHint tells an administrator how to try a failed change again.
func (c *Changes) RetryHint(s *scope.Scope) string {
	return "or at once: kubectl annotate windowsinstance " + s.Instance.Name + " -n " + c.Namespace + " " +
		v1alpha1.AnnotationRetry + "=now"
}

// Note records that a change has failed. previous is the digest of the spec that the host can be rolled back to.
func (c *Changes) Note(s *scope.Scope, node *corev1.Node, reason, message, previous string) {
	before := ptr.Deref(s.Instance.Status.FailedChange, v1alpha1.FailedChange{})
	configuration := c.Specs.Configuration(s.Cluster)
	cause := c.CauseOf(s, node)
	if cause == v1alpha1.CauseRepair { // it does not work because of what was changed, if anything was
		switch {
		case node.Annotations[v1alpha1.AnnotationVersion] != c.Version:
			cause = v1alpha1.CauseUpgrade
		case s.Instance.Status.ConfigurationDigest != configuration:
			cause = v1alpha1.CauseConfiguration
		}
	}
	failed := &v1alpha1.FailedChange{
		Cause: cause, Version: c.Version, ConfigurationDigest: configuration, PreviousDigest: previous, Reason: reason,
		Message: text.Plain(message, result.LongestMessage),
		Time:    metav1.NewTime(c.Clock.Now()), Attempts: 1,
	}
	if spec, err := c.Specs.Of(s, node); err == nil {
		failed.SpecDigest = spec.Digest()
	}
	if before.Version == failed.Version && before.SpecDigest == failed.SpecDigest {
		failed.Attempts = before.Attempts + 1
	}
	failed.RetryAfter = ptr.To(metav1.NewTime(c.Clock.Now().Add(RetryDelay(s.Settings.FailureDeadline, failed.Attempts))))
	s.Instance.Status.FailedChange = failed
}

// RetryDelay returns the time before the next attempt of a change after so many failures.
func RetryDelay(first time.Duration, attempts int32) time.Duration {
	delay := first
	for i := int32(1); i < attempts && delay < longestRetry; i++ {
		delay *= 2
	}
	return min(delay, longestRetry)
}

// longestRetry is the longest time between two attempts after the node was brought back.
const longestRetry = 24 * time.Hour
