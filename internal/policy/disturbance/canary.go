package disturbance

import (
	"fmt"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// The first node of all that is brought to another version of the operator goes alone, and then the first of each pool:
// the others follow once it has been Ready with the version for canarySoak. When it fails, they do not follow.

// canaryScope tells which nodes the candidate's canary is one of: those of all pools while the version is proven in
// none, else those of its own. There is nothing to wait for (false) when the version is proven in its own pool.
func (s *scene) canaryScope() (within func(pool string) bool, wanted bool) {
	if s.Cause != v1alpha1.CauseUpgrade || s.Version == "" {
		return nil, false
	}
	anywhere := false
	for _, n := range s.pool.Nodes {
		if n.Version == s.Version && n.soaked(s.settings, s.now) {
			if n.Pool == s.candidate.Pool {
				return nil, false
			}
			anywhere = true
		}
	}
	return func(pool string) bool { return !anywhere || pool == s.candidate.Pool }, true
}

func canaryNotFailed(s *scene) string {
	within, wanted := s.canaryScope()
	if !wanted || s.candidate.failedUpgrade(s.Version) { // a node that has failed itself is tried again, when its turn comes
		return ""
	}
	failed := s.failedNote(func(d standingDisruption) bool {
		return d.Cause == v1alpha1.CauseUpgrade && d.Version == s.Version && within(d.Pool)
	})
	for _, n := range s.pool.Nodes {
		if failed != "" {
			break
		}
		if n.Instance == s.Instance || !within(n.Pool) {
			continue
		}
		switch {
		case n.failedUpgrade(s.Version):
			failed = n.describe() + " has failed: " + failureText(*n.Failure)
		case n.Version == s.Version && n.overdue(s.settings, s.now) && !s.busy(n.Instance):
			failed = fmt.Sprintf("%s has the version, and is not Ready since %s.", n.describe(), moment(n.Since))
		}
	}
	if failed == "" {
		return ""
	}
	return fmt.Sprintf("The first node that was brought to version %s has failed, so the others stay as they are. %s Mend it and set the annotation %s on its WindowsInstance, or install another release of the operator.",
		s.Version, failed, v1alpha1.AnnotationRetry)
}

func canarySoaked(s *scene) string {
	within, wanted := s.canaryScope()
	if !wanted {
		return ""
	}
	for _, d := range s.entries {
		if d.Cause == v1alpha1.CauseUpgrade && d.Version == s.Version && within(d.Pool) {
			s.askAgain(d.until)
			return fmt.Sprintf("%s, as the first with version %s. %s", d.describe(), s.Version, s.othersFollow())
		}
	}
	for _, n := range s.pool.Nodes {
		if n.Instance == s.Instance || n.Gone || n.Version != s.Version || !within(n.Pool) {
			continue
		}
		if !n.Ready {
			s.askAgain(n.Since.Add(s.settings.FailureDeadline))
			return fmt.Sprintf("%s is the first with version %s, and not Ready since %s. %s", n.describe(), s.Version,
				moment(n.Since), s.othersFollow())
		}
		until := n.Since.Add(s.settings.CanarySoak)
		s.askAgain(until)
		return fmt.Sprintf("%s is the first with version %s, and must stay Ready until %s before the others follow.",
			n.describe(), s.Version, moment(until))
	}
	return ""
}

// othersFollow says when the nodes after the first one may be upgraded.
func (s *scene) othersFollow() string {
	if s.settings.CanarySoak == 0 {
		return "The others follow when it is Ready."
	}
	return fmt.Sprintf("The others follow when it has been Ready for %s.", policy.ShortDuration(s.settings.CanarySoak))
}
