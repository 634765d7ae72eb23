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
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// FailedChanges records failed changes in status.failedChange of instances.
type FailedChanges struct {
	Specs     desired.SpecBuilder
	Clock     clock.PassiveClock
	Namespace string // of the instances
	Version   string // of the operator
}

// CauseOf returns the reason for changing a node in service.
func (c *FailedChanges) CauseOf(s *scope.Scope, node *corev1.Node) v1alpha1.DisruptionCause {
	outdated := node.Annotations[v1alpha1.AnnotationVersion] != c.Version
	switch {
	// Upgrading an unchanged host of another version is not a repair: a pause of upgrades and a failure of the
	// first node apply to this host too.
	case outdated && (nodeidentity.IsReady(node) || s.Instance.Status.SpecDigest != ""):
		return v1alpha1.CauseUpgrade
	// The same applies to another version of Kubernetes: a kubelet of another version repairs nothing.
	case s.Instance.Status.SpecDigest != "" && c.hasOtherKubernetes(s):
		return v1alpha1.CauseConfiguration
	case !nodeidentity.IsReady(node):
		return v1alpha1.CauseRepair
	}
	return v1alpha1.CauseConfiguration
}

func (c *FailedChanges) hasOtherKubernetes(s *scope.Scope) bool {
	configured := s.Instance.Status.Kubernetes
	return configured != "" && configured != c.Specs.KubernetesFor(s)
}

// Matches reports whether a failure belongs to the desired change.
func (c *FailedChanges) Matches(s *scope.Scope, node *corev1.Node, failed *v1alpha1.FailedChange) bool {
	switch failed.Cause {
	case v1alpha1.CauseReboot:
		return nodes.IsRebootRequested(node)
	case v1alpha1.CauseRemoval:
		return false // the desired state is a node again
	}
	spec, err := c.Specs.Build(s, node)
	return err == nil && failed.Version == c.Version && failed.SpecDigest == spec.Digest()
}

// IsObsolete reports whether a failure certainly belongs to another change than the desired one, so that other
// nodes need not wait for it. If the failed settings are still desired, the failure counts for other nodes
// until the node has these settings, regardless of other changes to the host.
func (c *FailedChanges) IsObsolete(s *scope.Scope, node *corev1.Node, failed *v1alpha1.FailedChange) bool {
	_, err := c.Specs.Build(s, node)
	return err == nil && !c.Matches(s, node, failed) && !c.hasSameSettings(s, failed)
}

func (c *FailedChanges) hasSameSettings(s *scope.Scope, failed *v1alpha1.FailedChange) bool {
	brings := failed.Cause == v1alpha1.CauseUpgrade || failed.Cause == v1alpha1.CauseConfiguration
	return brings && !failed.DrainTimedOut && failed.Version == c.Version && failed.ConfigurationDigest != "" &&
		failed.ConfigurationDigest == c.Specs.ConfigurationDigest(s.Cluster)
}

// AwaitRetry prevents a ready node from acquiring a slot again at once after a change that failed without a
// rollback.
func (c *FailedChanges) AwaitRetry(s *scope.Scope, node *corev1.Node, cause v1alpha1.DisruptionCause) *result.Result {
	failed := s.Instance.Status.FailedChange
	if failed == nil || failed.RolledBack || failed.RetryAfter == nil || cause != failed.Cause || !nodeidentity.IsReady(node) || !c.Matches(s, node, failed) {
		return nil
	}
	rest := failed.RetryAfter.Sub(c.Clock.Now())
	if rest <= 0 {
		return nil
	}
	return &result.Result{
		Condition: v1alpha1.ConditionUpToDate, Reason: v1alpha1.ReasonChangeFailed, Outcome: result.Wait, RequeueAfter: rest,
		Message:    failed.Message,
		NextAction: "The operator retries at " + failed.RetryAfter.UTC().Format(time.RFC3339) + ", " + c.RetryHint(s),
	}
}

// RetryHint returns the command for retrying a failed change.
func (c *FailedChanges) RetryHint(s *scope.Scope) string {
	return "or at once: kubectl annotate windowsinstance " + s.Instance.Name + " -n " + c.Namespace + " " +
		v1alpha1.AnnotationRetry + "=now"
}

// Record records that a change has failed. previous is the digest of the rollback target.
func (c *FailedChanges) Record(s *scope.Scope, node *corev1.Node, reason, message, previous string) {
	before := ptr.Deref(s.Instance.Status.FailedChange, v1alpha1.FailedChange{})
	configuration := c.Specs.ConfigurationDigest(s.Cluster)
	cause := c.CauseOf(s, node)
	if cause == v1alpha1.CauseRepair { // the node is not ready because of the change, if there was a change
		switch {
		case node.Annotations[v1alpha1.AnnotationVersion] != c.Version:
			cause = v1alpha1.CauseUpgrade
		case s.Instance.Status.ConfigurationDigest != configuration:
			cause = v1alpha1.CauseConfiguration
		}
	}
	failed := &v1alpha1.FailedChange{
		Cause: cause, Version: c.Version, ConfigurationDigest: configuration, PreviousDigest: previous, Reason: reason,
		Message: sanitize.Plain(message, result.MaxMessageLength),
		Time:    metav1.NewTime(c.Clock.Now()), Attempts: 1,
	}
	if spec, err := c.Specs.Build(s, node); err == nil {
		failed.SpecDigest = spec.Digest()
	}
	if before.Version == failed.Version && before.SpecDigest == failed.SpecDigest {
		failed.Attempts = before.Attempts + 1
	}
	failed.RetryAfter = ptr.To(metav1.NewTime(c.Clock.Now().Add(RetryDelay(s.Settings.FailureDeadline, failed.Attempts))))
	s.Instance.Status.FailedChange = failed
}

// RetryDelay returns the delay before the next attempt of a change after the given number of failures.
func RetryDelay(first time.Duration, attempts int32) time.Duration {
	delay := first
	for i := int32(1); i < attempts && delay < maxRetryInterval; i++ {
		delay *= 2
	}
	return min(delay, maxRetryInterval)
}

// maxRetryInterval is the maximum time between two attempts after a rollback.
const maxRetryInterval = 24 * time.Hour
