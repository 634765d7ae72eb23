// Package verb is the language between the operator and the agent: the verbs that the operator runs over SSH, and the
// JSON lines that they answer with. Lines are ASCII; any output before the first one (login scripts, AutoRun) is noise.
package verb

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/plan"
)

// Name is one of the agent's verbs.
type Name string

// The verbs. Service is the agent's mode as a Windows service and is never run over SSH.
const (
	Facts   Name = "facts"   // says what the host is; changes nothing but who may open the agent's own folder
	Inspect Name = "inspect" // says what the host is and how its Windows features are; changes nothing at all
	// Collect says how the host is and what has happened on it, for a support case; changes nothing at all.
	Collect Name = "collect"
	Plan    Name = "plan"   // says what apply would do; changes nothing
	Apply   Name = "apply"  // does it
	Verify  Name = "verify" // proves that the node works
	Remove  Name = "remove" // gives the host back as it was before
	// Rollback brings the host back to the NodeSpec that it had before the one that was applied with a fallback.
	Rollback Name = "rollback"
	Commit   Name = "commit" // forgets that NodeSpec, and removes what only it needs
	Reboot   Name = "reboot" // restarts the host, unless that has happened already
	Patch    Name = "patch"  // makes another version of the agent of its own program
	// Renew gives services that have a certificate of their own another one.
	Renew   Name = "renew"
	Service Name = "service" // runs as the Windows service
)

// Locking are the verbs that change the host or prove the node, one at a time.
func Locking() []Name { return []Name{Apply, Verify, Renew, Rollback, Commit, Reboot, Remove} }

// Magic is the value of Line.WICD by which the operator tells the agent's lines from noise.
const Magic = "v1"

// Type is the kind of a line.
type Type string

// Types of lines. Every run begins with Hello and ends with Result or Failure.
const (
	TypeHello     Type = "hello"
	TypePlan      Type = "plan"      // the steps about to be done
	TypeStep      Type = "step"      // a step begins, makes progress or has ended
	TypeResult    Type = "result"    // the verb did what it could; see Result
	TypeFailure   Type = "failure"   // the verb failed; see Failure
	TypeRebooting Type = "rebooting" // the host restarts now; the connection will drop
)

// Line is one line of the answer.
type Line struct {
	WICD    string     `json:"wicd"` // Magic
	Type    Type       `json:"type"`
	Time    time.Time  `json:"time"`
	Hello   *Hello     `json:"hello,omitempty"`
	Plan    *plan.Plan `json:"plan,omitempty"`
	Step    *Step      `json:"step,omitempty"`
	Result  *Result    `json:"result,omitempty"`
	Failure *Failure   `json:"failure,omitempty"`
}

// Hello is the first line.
type Hello struct {
	Version string `json:"version"` // of the agent
	Verb    Name   `json:"verb"`
	BootID  string `json:"bootID"`
	PID     int    `json:"pid"`
}

// StepState is the progress of a step.
type StepState string

// States of a step.
const (
	StepStarted  StepState = "started"
	StepProgress StepState = "progress"
	StepDone     StepState = "done"
)

// Step reports one step of the plan.
type Step struct {
	Name   string    `json:"name"`
	Reason string    `json:"reason,omitempty"`
	Index  int       `json:"index"` // from 1
	Of     int       `json:"of"`
	State  StepState `json:"state"`
	Detail string    `json:"detail,omitempty"` // what is being waited for, bytes done
}

// Result is the end of a verb that ran.
type Result struct {
	Facts *plan.Facts `json:"facts,omitempty"` // of every verb but verify: as they are after it; of inspect and collect with the features
	Plan  *plan.Plan  `json:"plan,omitempty"`  // plan: what would be done; apply, rollback, settle and remove: what is left, with what it needs
	// Checks are the results of verify.
	Checks []CheckResult `json:"checks,omitempty"`
	// KubeletStarted is when the kubelet began that was checked, by the host's clock: what its Node said before is not its
	// word. Of verify, and zero where that is not known.
	KubeletStarted time.Time `json:"kubeletStarted,omitzero"`
	// Removed is true when remove has nothing left to do but its own files, which the operator deletes.
	Removed bool `json:"removed,omitempty"`
	// NotRestored names what a later agent has written into the ledger and this one cannot restore. Of remove.
	NotRestored []string `json:"notRestored,omitempty"`
	// Collected is the result of collect, with Facts.
	Collected *Collected `json:"collected,omitempty"`
	// NoFallback says why the former NodeSpec could not be kept although the operator had asked for it; empty when it was.
	// Of apply.
	NoFallback string `json:"noFallback,omitempty"`
}

// CheckResult is the finding of one check.
type CheckResult struct {
	Name     string `json:"name"`
	Passed   bool   `json:"passed"`
	Advisory bool   `json:"advisory,omitempty"`
	Message  string `json:"message"`
}

// Reason is why a verb failed, as a condition's reason.
type Reason string

// Reasons.
const (
	ReasonAgentBusy        Reason = "AgentBusy"        // another verb runs on the host
	ReasonInvalidInput     Reason = "InvalidInput"     // flags or input file are wrong
	ReasonStepFailed       Reason = "StepFailed"       // a step of the plan failed
	ReasonDiskFull         Reason = "DiskFull"         // the system volume is full
	ReasonServiceFailed    Reason = "ServiceFailed"    // a service does not start
	ReasonPayloadCorrupted Reason = "PayloadCorrupted" // a transferred file is not what it should be
	ReasonSpecNotFound     Reason = "SpecNotFound"     // the host lacks the NodeSpec that the verb needs
	ReasonAgentError       Reason = "AgentError"       // a fault of the agent
)

// Failure is why a verb ended early.
type Failure struct {
	Reason  Reason `json:"reason"`
	Step    string `json:"step,omitempty"` // the step that failed
	Message string `json:"message"`        // in words for an administrator
}

// Error makes a Failure an error.
func (f *Failure) Error() string {
	if f.Step == "" {
		return f.Message
	}
	return fmt.Sprintf("%s: %s", f.Step, f.Message)
}

// Encode writes the line as ASCII JSON without a newline, so that no code page of a console can change it.
func (l Line) Encode() ([]byte, error) {
	l.WICD = Magic
	data, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encode %s line: %w", l.Type, err)
	}
	return asciiJSON(data), nil
}

// asciiJSON replaces every non-ASCII rune by its JSON escape.
func asciiJSON(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for _, r := range string(data) {
		switch {
		case r < 0x80:
			out = append(out, byte(r)) //nolint:gosec // G115: below 0x80
		case r > 0xFFFF:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xD800+(r>>10), 0xDC00+(r&0x3FF))
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// Decode reads one line; ok is false for noise.
func Decode(data []byte) (line Line, ok bool) {
	if err := json.Unmarshal(data, &line); err != nil || line.WICD != Magic {
		return Line{}, false
	}
	return line, true
}
