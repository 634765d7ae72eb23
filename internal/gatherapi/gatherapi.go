// Package gatherapi is what kubectl windows gather and the command survey of the operator's program tell each other. Each may
// be of a release before or after the other's.
package gatherapi

import "encoding/json"

// Command is the command of the operator's program, and HostTimeout its flag for how long one host may take.
const (
	Command     = "survey"
	HostTimeout = "host-timeout"
)

// Request is the input of the command.
type Request struct {
	Hosts []Wish `json:"hosts"`
}

// Wish is a host to look at.
type Wish struct {
	Name string `json:"name"` // of the WindowsInstance
	// Logs asks for the ends of its services' logs too.
	Logs bool `json:"logs,omitempty"`
}

// Report is what the command says of one host, in a line of its own as soon as it is known.
type Report struct {
	Name string `json:"name"`
	// Error is why the operator cannot log in to the host; empty when it can.
	Error string `json:"error,omitempty"`
	// Found are the facts of the host and its survey, as the agent there has told them; nil when it has not.
	Found json.RawMessage `json:"found,omitempty"`
	// Plan is what the operator would change on the host now, in words, or why that is not known.
	Plan string `json:"plan,omitempty"`
	// Runs are what the agent has said when verbs were run last on the host, in words.
	Runs string `json:"runs,omitempty"`
	// Logs are the ends of the logs of services.
	Logs map[string][]byte `json:"logs,omitempty"`
	// Gaps are what could not be read although the operator could log in.
	Gaps []string `json:"gaps,omitempty"`
}
