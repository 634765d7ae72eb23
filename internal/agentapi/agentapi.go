// Package agentapi is the protocol between the operator and the agent: the agent commands that the operator runs
// over SSH, and the JSON lines of their output. Lines are ASCII; any output before the first line (login
// scripts, AutoRun) is noise.
package agentapi

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/plan"
)

// Name is the name of an agent command.
type Name string

// The agent commands. Service is the agent's mode as a Windows service and is never run over SSH.
const (
	Facts   Name = "facts"   // reports the host facts; secures C:\k and the agent's own directory, changes nothing else
	Inspect Name = "inspect" // reports the host facts and the states of Windows features; changes nothing
	// Collect reports the state of the host and recent events, for a support case; changes nothing.
	Collect Name = "collect"
	Plan    Name = "plan"   // reports the pending changes of apply; changes nothing
	Apply   Name = "apply"  // makes the changes
	Verify  Name = "verify" // verifies that the node works
	Remove  Name = "remove" // restores the host to its original state
	// Rollback rolls the host back to the NodeSpec before the last one applied with a rollback target.
	Rollback Name = "rollback"
	Commit   Name = "commit" // deletes the rollback target and its files
	Reboot   Name = "reboot" // restarts the host, unless it has restarted already
	Patch    Name = "patch"  // creates another version of the agent from its own program
	// Renew replaces the certificates of services that have their own.
	Renew   Name = "renew"
	Service Name = "service" // runs as the Windows service
)

// LockingCommands returns the agent commands that change the host or verify the node, one at a time.
func LockingCommands() []Name { return []Name{Apply, Verify, Renew, Rollback, Commit, Reboot, Remove} }

// Magic is the value of Line.WICD that distinguishes the agent's lines from noise.
const Magic = "v1"

// Type is the type of a line.
type Type string

// Types of lines. Every run begins with Hello and ends with Result, Failure or Rebooting.
const (
	TypeHello     Type = "hello"
	TypePlan      Type = "plan"      // the next steps
	TypeStep      Type = "step"      // a step begins, makes progress or has ended
	TypeResult    Type = "result"    // the command has completed; see Result
	TypeFailure   Type = "failure"   // the command failed; see Failure
	TypeRebooting Type = "rebooting" // the host restarts now; the connection will drop
)

// Line is one line of the output.
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
	Command Name   `json:"verb"`
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
	Detail string    `json:"detail,omitempty"` // the awaited condition, processed bytes
}

// Result is the result of a completed agent command.
type Result struct {
	// Facts are the facts after the command; with the features after inspect and collect. Not of verify and patch.
	Facts *plan.Facts `json:"facts,omitempty"`
	Plan  *plan.Plan  `json:"plan,omitempty"` // of plan: all changes; otherwise: remaining changes
	// Checks are the results of verify.
	Checks []CheckResult `json:"checks,omitempty"`
	// KubeletStarted is the start time of the verified kubelet, by the host's clock: earlier reports of the
	// Node do not come from this kubelet. Of verify; zero if unknown.
	KubeletStarted time.Time `json:"kubeletStarted,omitzero"`
	// Removed is true if only the agent's own files remain after remove, which the operator deletes.
	Removed bool `json:"removed,omitempty"`
	// NotRestored names entries of the ledger, written by a later agent, that this agent cannot restore. Of remove.
	NotRestored []string `json:"notRestored,omitempty"`
	// Collected is the result of collect, with Facts.
	Collected *Collected `json:"collected,omitempty"`
	// NoRollbackReason is the reason that the previous NodeSpec could not be kept as requested by the operator; empty
	// if it was kept. Of apply.
	NoRollbackReason string `json:"noFallback,omitempty"`
}

// CheckResult is the result of one check.
type CheckResult struct {
	Name     string `json:"name"`
	Passed   bool   `json:"passed"`
	Advisory bool   `json:"advisory,omitempty"`
	Message  string `json:"message"`
}

// Reason is the reason for a failed agent command, used as a condition's reason.
type Reason string

// Reasons.
const (
	ReasonAgentBusy        Reason = "AgentBusy"        // another agent command runs on the host
	ReasonInvalidInput     Reason = "InvalidInput"     // flags or input file are wrong
	ReasonStepFailed       Reason = "StepFailed"       // a step of the plan failed
	ReasonDiskFull         Reason = "DiskFull"         // the system volume is full
	ReasonServiceFailed    Reason = "ServiceFailed"    // a service does not start or stop
	ReasonPayloadCorrupted Reason = "PayloadCorrupted" // a transferred file has a wrong content
	ReasonSpecNotFound     Reason = "SpecNotFound"     // the host lacks the NodeSpec that the command needs
	ReasonAgentError       Reason = "AgentError"       // a fault of the agent
)

// Failure is the reason for the early end of an agent command.
type Failure struct {
	Reason  Reason `json:"reason"`
	Step    string `json:"step,omitempty"` // the failed step
	Message string `json:"message"`        // for administrators
}

// Error implements error.
func (f *Failure) Error() string {
	if f.Step == "" {
		return f.Message
	}
	return fmt.Sprintf("%s: %s", f.Step, f.Message)
}

// Encode encodes the line as ASCII JSON without a newline, so that no code page of a console can change it.
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
