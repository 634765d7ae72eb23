package agent

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/windows-machine-config/wmco/internal/verb"
)

// nodeReport is the status of a WindowsNodeReport. The agent links nothing of the API, so its fields stand here a second time, and a test
// compares them. Each is always written: a merge patch leaves what it does not name.
type nodeReport struct {
	Time         time.Time   `json:"time"`
	AgentVersion string      `json:"agentVersion"`
	SpecDigest   string      `json:"specDigest"`
	State        string      `json:"state"`
	Message      string      `json:"message"`
	Drift        []nodeDrift `json:"drift"`
}

// nodeDrift is one thing that differed from the spec.
type nodeDrift struct {
	Step     string    `json:"step"`
	Reason   string    `json:"reason"`
	Time     time.Time `json:"time"`
	Repaired bool      `json:"repaired"`
}

// How the agent finds the host.
const (
	stateInSync  = "InSync"
	stateDrifted = "Drifted"
)

// How much of a text and of a list the API takes: texts in characters.
const (
	maxReportVersion = 64
	maxReportMessage = 1024
	maxReportStep    = 256
	maxReportReason  = 512
	maxReportDrift   = 16
)

// finding is what is known of the host, and what it takes to tell whether the next is any news.
type finding struct {
	Report nodeReport `json:"report"`
	// Trouble is what is not repaired, without what differs each time, such as the ID of a process.
	Trouble string `json:"trouble,omitempty"`
}

// known tells whether the host was ever found in a state.
func (f finding) known() bool { return f.Report.State != "" }

// next is what is known after another outcome. It is what it was when there is no news.
func (f finding) next(o outcome, version string, now time.Time) finding {
	now = now.UTC().Truncate(time.Second) // as the API keeps it
	f.Report.Drift = slices.Clone(f.Report.Drift)
	for _, step := range o.repairs {
		if !step.start {
			f.Report.addDrift(step.name, step.reason, true, now)
		}
	}
	if o.failure != nil && o.failure.Step != "" {
		f.Report.addDrift(o.failure.Step, failureReason(o.failure), false, now)
	}
	if !o.tells() {
		return f
	}
	trouble, event := troubleOf(o)
	if trouble != f.Trouble || !f.known() {
		f.Trouble, f.Report.Message = trouble, bounded(event.Message, maxReportMessage)
	}
	f.Report.State = stateInSync
	if trouble != "" {
		f.Report.State = stateDrifted
	}
	f.Report.AgentVersion, f.Report.SpecDigest = bounded(version, maxReportVersion), o.spec.Digest()
	return f
}

// tells tells whether an outcome says how the host is. While a verb changes it, or the node is on its way, nobody knows.
func (o outcome) tells() bool {
	return o.spec != nil && !o.skipped && (!o.waits || o.failure != nil || o.left != "")
}

func failureReason(failure *verb.Failure) string {
	if failure.Message == "" {
		return string(failure.Reason)
	}
	return failure.Message
}

// addDrift puts a thing that differed before the others. It is no news that the same was repaired again within an hour, or still is not.
func (r *nodeReport) addDrift(step, reason string, repaired bool, now time.Time) {
	step = bounded(step, maxReportStep)
	same := func(d nodeDrift) bool { return d.Step == step }
	if i := slices.IndexFunc(r.Drift, same); i >= 0 {
		known := r.Drift[i]
		lasts := r.State == stateDrifted
		if repaired {
			age := now.Sub(known.Time) // less than none where the clock was ahead
			lasts = age >= 0 && age < EventRepeat
		}
		if known.Repaired == repaired && lasts {
			return
		}
		r.Drift = slices.DeleteFunc(r.Drift, same)
	}
	r.Drift = slices.Insert(r.Drift, 0, nodeDrift{Step: step, Reason: bounded(reason, maxReportReason), Time: now, Repaired: repaired})
	r.Drift = r.Drift[:min(len(r.Drift), maxReportDrift)]
}

// equals tells whether two reports say the same, whenever that was.
func (r nodeReport) equals(other nodeReport) bool {
	return r.AgentVersion == other.AgentVersion && r.SpecDigest == other.SpecDigest && r.State == other.State && r.Message == other.Message &&
		slices.EqualFunc(r.Drift, other.Drift, func(a, b nodeDrift) bool {
			return a.Step == b.Step && a.Reason == b.Reason && a.Repaired == b.Repaired && a.Time.Equal(b.Time)
		})
}

// bounded is a text as the API takes it: a line of at most so many characters.
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
