package report

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// nodeCondition is the condition WindowsConfiguration of a Node. The agent links nothing of the API, so the fields of a
// NodeCondition stand here a second time; a test compares them.
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

// Bounds of what a Node's status holds of a host: characters of the message, and repairs that one message names.
const (
	maxConditionMessage = 1024
	maxConditionRepairs = 16
)

// same reports whether two conditions say the same, whenever that was.
func (c nodeCondition) same(other nodeCondition) bool {
	return c.Status == other.Status && c.Reason == other.Reason && c.Message == other.Message
}

// finding is what the comparisons with the spec have come to, as far as the API server was not told.
type finding struct {
	// spec is the digest of the spec that the host was last compared with; empty before the first comparison.
	spec string
	// trouble identifies what is not repaired, without what differs each time, such as the ID of a process. Empty when
	// nothing is.
	trouble string
	// message describes the trouble.
	message string
	// needsOperator is true when only the operator can repair a part of the trouble.
	needsOperator bool
	// repairs are those since the last report to the API server that named some, oldest first.
	repairs []string
	// last is the name of the last repair, and at its time.
	last, at string
}

// next returns the finding after another comparison.
func (f finding) next(o Outcome, now time.Time) finding {
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
	trouble, event := o.Trouble()
	if trouble != f.trouble {
		f.trouble, f.message, f.needsOperator = trouble, event.Message, o.Left != ""
	}
	f.spec = o.Spec.Digest()
	return f
}

// condition is the finding as a condition, without its times.
func (f finding) condition(version string) nodeCondition {
	c := nodeCondition{Type: nodespec.ConditionConfiguration, Status: conditionFalse}
	// With the time, the same repair says something new each time: the operator counts how often that happens.
	repaired := "Drift was repaired, most recently at " + f.at + ": " + strings.Join(f.repairs, "; ") + "."
	switch {
	case f.trouble != "":
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
	c.Message = bounded(c.Message, maxConditionMessage)
	return c
}

// told returns the finding when the API server has taken the first so many of its repairs.
func (f finding) told(repairs int) finding {
	f.repairs = f.repairs[repairs:]
	return f
}

// bounded is a text as one line of at most so many characters.
func bounded(text string, most int) string {
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
