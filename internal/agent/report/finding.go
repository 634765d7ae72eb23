package report

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// nodeCondition is the condition WindowsConfiguration of a Node. The agent does not link the API package, so
// the fields of NodeCondition are repeated here; a test compares them.
type nodeCondition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	LastHeartbeatTime  time.Time `json:"lastHeartbeatTime"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// Values of a condition's status.
const (
	conditionTrue  = "True"
	conditionFalse = "False"
)

// Limits for the Node's status: characters of the message, and repairs named by one message.
const (
	maxConditionMessage = 1024
	maxConditionRepairs = 16
)

// hasSameState reports whether two conditions are equal except for their times.
func (c nodeCondition) hasSameState(other nodeCondition) bool {
	return c.Status == other.Status && c.Reason == other.Reason && c.Message == other.Message
}

// finding is the result of the comparisons with the spec that the API server has not received yet.
type finding struct {
	// spec is the digest of the last compared spec; empty before the first comparison.
	spec string
	// problem identifies the unrepaired problem without varying details such as process IDs. Empty if there is
	// none.
	problem string
	// message describes the problem.
	message string
	// needsOperator is true when only the operator can repair a part of the problem.
	needsOperator bool
	// repairs are the repairs since the last report to the API server that named some, oldest first.
	repairs []string
	// last is the name of the last repair, and at is its time.
	last, at string
}

// withOutcome returns the finding after another comparison.
func (f finding) withOutcome(o Outcome, now time.Time) finding {
	f.repairs = slices.Clone(f.repairs)
	for _, step := range o.Repairs {
		if step.Start {
			continue // a start after a boot is no repair
		}
		done := step.Name + " (" + step.Reason + ")"
		f.last, f.at = done, now.UTC().Format(time.RFC3339)
		if !slices.Contains(f.repairs, done) && len(f.repairs) < maxConditionRepairs {
			f.repairs = append(f.repairs, done)
		}
	}
	if !o.IsConclusive() {
		return f
	}
	trouble, event := o.Problem()
	if trouble != f.problem {
		f.problem, f.message, f.needsOperator = trouble, event.Message, o.Left != ""
	}
	f.spec = o.Spec.Digest()
	return f
}

// toCondition returns the finding as a condition without times.
func (f finding) toCondition(version string) nodeCondition {
	c := nodeCondition{Type: nodespec.ConditionConfiguration, Status: conditionFalse}
	// With the time, each occurrence of a repair changes the message: the operator counts the occurrences.
	repaired := "Drift was repaired, most recently at " + f.at + ": " + strings.Join(f.repairs, "; ") + "."
	switch {
	case f.problem != "":
		c.Reason, c.Message = nodespec.ConfigurationDrifted, f.message
		if f.needsOperator {
			c.Reason = nodespec.ConfigurationNeedsOperator
		}
		if len(f.repairs) > 0 {
			c.Message += ". " + repaired
		}
	case len(f.repairs) > 0:
		c.Reason, c.Message = nodespec.ConfigurationRepaired, repaired
	default:
		c.Status, c.Reason = conditionTrue, nodespec.ConfigurationInSync
		c.Message = "The host matches its NodeSpec sha256:" + f.spec + ", by agent " + version + "."
		if f.last != "" {
			c.Message += " Last repair " + f.at + ": " + f.last + "."
		}
	}
	c.Message = truncateLine(c.Message, maxConditionMessage)
	return c
}

// withoutReported returns the finding after the API server has accepted the first repairs, up to the given number.
func (f finding) withoutReported(repairs int) finding {
	f.repairs = f.repairs[repairs:]
	return f
}

// truncateLine returns a text as one line of at most the given number of characters.
func truncateLine(text string, most int) string {
	line := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?")))
	if len(line) > most {
		line = append(line[:most-1], '…')
	}
	return string(line)
}
