package report

import (
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Outcome is what a comparison of the host with the spec has come to.
type Outcome struct {
	Repairs []Repair // that were done
	Left    string   // what only the operator can do; empty when there is nothing
	Failure *verb.Failure
	Skipped bool // a verb is at work, or the host is being given back
	Waits   bool // the node is on its way: it waits for its network, or for what the operator brings
	Spec    *nodespec.NodeSpec
}

// Repair is a step that was done.
type Repair struct {
	Name, Reason string
	Start        bool // it is a part of the node's start after a boot
}

// Tried returns the names of the steps that were done or have failed.
func (o Outcome) Tried() []string {
	var names []string
	for _, step := range o.Repairs {
		names = append(names, step.Name)
	}
	if o.Failure != nil && o.Failure.Step != "" {
		names = append(names, o.Failure.Step)
	}
	return names
}

// IsConclusive reports whether an outcome says how the host is. While a verb changes the host, or the node is being
// made, nobody knows.
func (o Outcome) IsConclusive() bool {
	return o.Spec != nil && !o.Skipped && (!o.Waits || o.Failure != nil || o.Left != "")
}

// Trouble returns what an outcome leaves unrepaired, and the event for it. The first names the trouble without what
// differs each time, such as the ID of a process.
func (o Outcome) Trouble() (trouble string, event host.Event) {
	var messages []string
	if o.Failure != nil {
		trouble = "failure " + o.Failure.Step
		if o.Failure.Step == "" {
			trouble += o.Failure.Message
		}
		messages = append(messages, "not repaired: "+o.Failure.Error())
		event.Level, event.ID = host.EventError, EventNotRepaired
		if o.Failure.Reason == verb.ReasonServiceFailed {
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
