package disruption

import (
	"fmt"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// A new operator version or new cluster settings are first rolled out to a single canary node of the cluster, then to
// one canary node of each pool. The remaining nodes follow after the canary has been Ready with the new version or
// settings for canarySoak. If the canary fails, no other node follows.

// rollout is a change that a canary node must verify first: an operator version or, if configuration is set, the
// cluster settings under that version.
type rollout struct {
	version, configuration string
}

// requestedRollouts returns the rollouts that the request introduces. Repairs, removals, reboots and key changes
// introduce none; neither do settings that the candidate already has.
func (s *decisionInput) requestedRollouts() []rollout {
	var list []rollout
	if s.Version == "" {
		return nil
	}
	if s.Cause == v1alpha1.CauseUpgrade {
		list = append(list, rollout{version: s.Version})
	}
	if isSettingsCause(s.Cause) && s.Configuration != "" && !s.candidate.hasRollout(rollout{s.Version, s.Configuration}) {
		list = append(list, rollout{s.Version, s.Configuration})
	}
	return list
}

// isSettingsCause reports whether the cause applies the current settings to the node.
func isSettingsCause(cause v1alpha1.DisruptionCause) bool {
	return cause == v1alpha1.CauseUpgrade || cause == v1alpha1.CauseConfiguration
}

// isIntroducedBy reports whether a change with this cause, version and configuration introduces the rollout.
func (n rollout) isIntroducedBy(cause v1alpha1.DisruptionCause, version, configuration string) bool {
	if n.configuration == "" {
		return cause == v1alpha1.CauseUpgrade && version == n.version
	}
	return isSettingsCause(cause) && version == n.version && configuration == n.configuration
}

func (n Node) hasRollout(brought rollout) bool {
	return n.Version == brought.version && (brought.configuration == "" || n.Configuration == brought.configuration)
}

// hasFailedRollout reports whether the last change of the node introduced the rollout and failed. A drain timeout is
// not caused by the rollout and does not count.
func (n Node) hasFailedRollout(brought rollout) bool {
	f := n.Failure
	return f != nil && !n.Gone && !f.DrainTimedOut && brought.isIntroducedBy(f.Cause, f.Version, f.ConfigurationDigest)
}

// canaryScope returns the pools that share the candidate's canary: all pools until a node of any pool has verified
// the rollout, then only the candidate's pool. The result is false if a node of the candidate's pool has verified the
// rollout, so that no canary is needed.
func (s *decisionInput) canaryScope(brought rollout) (within func(pool string) bool, wanted bool) {
	anywhere := false
	for _, n := range s.pool.Nodes {
		if n.hasRollout(brought) && n.hasSoaked(s.settings, s.now) {
			if n.Pool == s.candidate.Pool {
				return nil, false
			}
			anywhere = true
		}
	}
	return func(pool string) bool { return !anywhere || pool == s.candidate.Pool }, true
}

func canaryFailed(s *decisionInput) string {
	for _, brought := range s.requestedRollouts() {
		failed := s.failedCanary(brought)
		if failed == "" {
			continue
		}
		remedy := "Fix the node and set the annotation %s on its WindowsInstance, or install another release of the operator."
		if brought.configuration != "" {
			remedy = "Correct the settings; or, if the node is at fault, fix it and set the annotation %s on its WindowsInstance."
		}
		return fmt.Sprintf("The first node with %s has failed, so no other node is changed. %s "+remedy,
			s.describeRollout(brought), failed, v1alpha1.AnnotationRetry)
	}
	return ""
}

// failedCanary describes the canary failure that stops the rollout.
func (s *decisionInput) failedCanary(brought rollout) string {
	within, wanted := s.canaryScope(brought)
	if !wanted || s.candidate.hasFailedRollout(brought) { // a failed candidate may be retried itself
		return ""
	}
	failed := s.describeFailedEntry(func(d timedDisruption) bool {
		return brought.isIntroducedBy(d.Cause, d.Version, d.ConfigurationDigest) && within(d.Pool)
	})
	for _, n := range s.pool.Nodes {
		if failed != "" {
			break
		}
		if n.Instance == s.Instance || !within(n.Pool) {
			continue
		}
		switch {
		case n.hasFailedRollout(brought):
			failed = n.describeWithPool() + " has failed: " + failureText(*n.Failure)
		case n.hasRollout(brought) && n.isOverdue(s.settings, s.now) && !s.hasActiveEntry(n.Instance):
			failed = fmt.Sprintf("%s has %s, but has not been Ready since %s.", n.describeWithPool(), brought.describeKind(), formatTime(n.Since))
		}
	}
	return failed
}

func canarySoaking(s *decisionInput) string {
	for _, brought := range s.requestedRollouts() {
		if wait := s.soakingCanary(brought); wait != "" {
			return wait
		}
	}
	return ""
}

// soakingCanary describes the canary that the rollout waits for.
func (s *decisionInput) soakingCanary(brought rollout) string {
	within, wanted := s.canaryScope(brought)
	if !wanted {
		return ""
	}
	for _, d := range s.entries {
		if brought.isIntroducedBy(d.Cause, d.Version, d.ConfigurationDigest) && within(d.Pool) {
			s.retryAt(d.until)
			return fmt.Sprintf("%s, as the first node with %s. %s", d.describeDisruption(), s.describeRollout(brought), s.describeFollowCondition())
		}
	}
	for _, n := range s.pool.Nodes {
		if n.Instance == s.Instance || n.Gone || !n.hasRollout(brought) || !within(n.Pool) {
			continue
		}
		if !n.Ready {
			s.retryAt(n.Since.Add(s.settings.FailureDeadline))
			return fmt.Sprintf("%s is the first node with %s, and has not been Ready since %s. %s", n.describeWithPool(), s.describeRollout(brought),
				formatTime(n.Since), s.describeFollowCondition())
		}
		until := n.Since.Add(s.settings.CanarySoak)
		s.retryAt(until)
		return fmt.Sprintf("%s is the first node with %s, and must remain Ready until %s before other nodes follow.",
			n.describeWithPool(), s.describeRollout(brought), formatTime(until))
	}
	return ""
}

// describeRollout describes the rollout for administrators.
func (s *decisionInput) describeRollout(brought rollout) string {
	switch {
	case brought.configuration == "":
		return "version " + brought.version
	case s.Cause == v1alpha1.CauseUpgrade:
		return "version " + brought.version + " with the current settings of the cluster"
	}
	return ChangedSettings(s.candidate.Configuration, brought.configuration)
}

func (n rollout) describeKind() string {
	if n.configuration == "" {
		return "the version"
	}
	return "these settings"
}

// describeFollowCondition describes the condition under which the remaining nodes may be changed.
func (s *decisionInput) describeFollowCondition() string {
	if s.settings.CanarySoak == 0 {
		return "Other nodes follow when it is Ready."
	}
	return fmt.Sprintf("Other nodes follow when it has been Ready for %s.", policy.ShortDuration(s.settings.CanarySoak))
}
