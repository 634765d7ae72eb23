package report

import (
	"strings"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Outcome is the result of a comparison of the host with the spec.
type Outcome struct {
	Repairs []Repair // completed repairs
	Left    string   // work that only the operator can do; empty if there is none
	Failure *agentapi.Failure
	Skipped bool // an agent command runs, or the host is being restored
	Waits   bool // the node waits for its network or for input from the operator
	Spec    *nodespec.NodeSpec
}

// Repair is a completed step.
type Repair struct {
	Name, Reason string
	Start        bool // part of the node's start after a boot
}

// TriedSteps returns the names of the steps that were completed or have failed.
func (o Outcome) TriedSteps() []string {
	var names []string
	for _, step := range o.Repairs {
		names = append(names, step.Name)
	}
	if o.Failure != nil && o.Failure.Step != "" {
		names = append(names, o.Failure.Step)
	}
	return names
}

// IsConclusive reports whether an outcome determines the state of the host. The state is unknown while an agent
// command changes the host, or while the node waits for its network or for the operator.
func (o Outcome) IsConclusive() bool {
	return o.Spec != nil && !o.Skipped && (!o.Waits || o.Failure != nil || o.Left != "")
}

// Problem returns the unrepaired problem of an outcome, and the event for it. The text identifies the problem
// without varying details such as process IDs.
func (o Outcome) Problem() (trouble string, event host.Event) {
	var messages []string
	if o.Failure != nil {
		trouble = "failure " + o.Failure.Step
		if o.Failure.Step == "" {
			trouble += o.Failure.Message
		}
		messages = append(messages, "not repaired: "+o.Failure.Error())
		event.Level, event.ID = host.EventError, EventNotRepaired
		if o.Failure.Reason == agentapi.ReasonServiceFailed {
			event.ID = EventServiceFailed
		}
	}
	if o.Left != "" {
		trouble += " left " + o.Left
		messages = append(messages, "left to the operator: "+o.Left)
		if o.Failure == nil {
			event.Level, event.ID = host.EventWarning, EventLeft
		}
	}
	event.Message = strings.Join(messages, "; ")
	return trouble, event
}
