package disruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Summary is the part of a WindowsDisruptionPolicy's status that covers all nodes.
type Summary struct {
	Nodes, Updated, Failed int32
	// Behind is the number of nodes with the version but without the current settings of the cluster.
	Behind int32
	// Text describes the progress of the nodes in one line.
	Text string
	// Stopped is true if no further node is changed until an administrator acts; Reason and Message are for the
	// condition.
	Stopped         bool
	Reason, Message string
	// After is the time until the next summary, if the summary can change with time alone. Zero means that it changes
	// only with another event.
	After time.Duration
}

// Summarize returns the progress of the nodes toward an operator version and a configuration, which is empty if not
// known. Hosts that no longer exist are excluded.
func Summarize(
	pool NodePool, settings Settings, version, configuration string, now time.Time,
) Summary {
	summary := Summary{}
	configuration = knownConfiguration(pool, version, configuration)
	rest := collectUnfinished(pool, settings, version, configuration, now)
	for _, n := range pool.Nodes {
		if n.Gone {
			continue
		}
		summary.Nodes++
		if n.Version == version {
			summary.Updated++
			if n.isBehind(configuration) {
				summary.Behind++
			}
		}
	}
	summary.Failed = int32(len(rest.failed)) //nolint:gosec // a number of nodes
	summary.Stopped, summary.Reason, summary.Message = rest.findStopReason()
	summary.After = rest.after
	summary.Text = rest.describeProgress(summary, version)
	return summary
}

// unfinished holds the parts of the summary besides numbers.
type unfinished struct {
	settings Settings
	// running describes the entries that count. failed names the nodes that have not recovered, or had a failed last
	// change.
	running, failed []string
	// waiting are the decisions on the nodes that need an upgrade or other settings and have not failed.
	waiting []Decision
	// general is the decision on any other change.
	general Decision
	after   time.Duration
}

func collectUnfinished(
	pool NodePool, settings Settings, version, configuration string, now time.Time,
) unfinished {
	rest := unfinished{settings: settings}
	listed := map[string]bool{}
	noted := map[string]bool{}
	for _, d := range pool.Disruptions {
		switch ended, failed, _ := Ended(d, pool, settings, now); {
		case failed && !ended:
			noted[d.Instance] = true
		case !ended:
			standing := timedDisruption{Disruption: d, until: d.Since.Add(settings.FailureDeadline)}
			rest.running = append(rest.running, standing.describeDisruption())
			rest.setRetryAfter(standing.until.Sub(now))
			listed[d.Instance] = true
		}
	}
	for _, n := range pool.Nodes {
		switch {
		case n.Gone || listed[n.Instance]:
		case n.Failure != nil || n.isOverdue(settings, now) || noted[n.Instance]:
			rest.failed = append(rest.failed, n.displayName())
		default:
			if !n.Ready {
				rest.setRetryAfter(n.Since.Add(settings.FailureDeadline).Sub(now))
			}
			if cause := n.causeOfChange(version, configuration); cause != "" {
				request := Request{Instance: n.Instance, UID: n.UID, Cause: cause, Version: version, Configuration: configuration}
				rest.waiting = append(rest.waiting, Allow(pool, request, settings, now))
			}
		}
		delete(noted, n.Instance)
	}
	for _, d := range pool.Disruptions { // the nodes of deleted Machines
		if noted[d.Instance] {
			rest.failed = append(rest.failed, Node{Instance: d.Instance, Node: d.Node}.displayName())
		}
	}
	for _, w := range rest.waiting {
		rest.setRetryAfter(w.After)
	}
	rest.general = Allow(pool, Request{Cause: v1alpha1.CauseConfiguration, Version: version}, settings, now)
	return rest
}

func (u *unfinished) setRetryAfter(after time.Duration) {
	if after > 0 && (u.after == 0 || after < u.after) {
		u.after = after
	}
}

// needsAdministrator reports whether neither time nor the progress of other nodes resolves the reason.
func needsAdministrator(reason string) bool {
	return slices.Contains([]string{v1alpha1.ReasonDisruptionPolicyInvalid, v1alpha1.ReasonDisruptionsPaused,
		v1alpha1.ReasonStoppedOnFailure, v1alpha1.ReasonCanaryFailed}, reason)
}

// findStopReason returns true if every waiting node waits for an administrator or, if no node waits, any node would.
func (u *unfinished) findStopReason() (stopped bool, reason, message string) {
	answers := u.waiting
	if len(answers) == 0 {
		answers = []Decision{u.general}
	}
	for _, answer := range answers {
		if answer.Allowed || !needsAdministrator(answer.Reason) {
			return false, "", ""
		}
	}
	return true, answers[0].Reason, answers[0].Message
}

func (u *unfinished) describeProgress(summary Summary, version string) string {
	if summary.Nodes == 0 && len(u.running) == 0 {
		return "There are no Windows nodes in service."
	}
	words := []string{fmt.Sprintf("%d of %d nodes have version %s.", summary.Updated, summary.Nodes, version)}
	if summary.Behind > 0 {
		words = append(words, fmt.Sprintf("%d of them do not have the current settings of the cluster yet.", summary.Behind))
	}
	if len(u.running) > 0 {
		words = append(words, listSome(u.running)+".")
	}
	if len(u.failed) > 0 {
		words = append(words, fmt.Sprintf("Failed: %s.", listSome(u.failed)))
	}
	switch {
	case summary.Stopped:
		words = append(words, summary.Message)
	case len(u.running) == 0:
		if i := slices.IndexFunc(u.waiting, func(d Decision) bool { return !d.Allowed }); i >= 0 {
			words = append(words, fmt.Sprintf("%d wait. %s", len(u.waiting), u.waiting[i].Message))
		}
	case len(u.waiting) > 0:
		words = append(words, fmt.Sprintf("%d wait.", len(u.waiting)))
	}
	return strings.Join(words, " ")
}
