package podexec

import "encoding/json"

// kubectl windows gather runs CollectCommand of the operator's program. CollectTimeout is its flag for the time limit of one
// host. Each side may be of an earlier or a later release than the other.
const (
	CollectCommand = "collect"
	CollectTimeout = "host-timeout"
)

// CollectRequest is the input of the command.
type CollectRequest struct {
	Hosts []CollectedHost `json:"hosts"`
}

// CollectedHost is a host to collect data from.
type CollectedHost struct {
	Name string `json:"name"` // of the WindowsInstance
	// Logs asks for the ends of its services' logs too.
	Logs bool `json:"logs,omitempty"`
}

// CollectReport is the output of the command for one host, in a line of its own as soon as it is known.
type CollectReport struct {
	Name string `json:"name"`
	// Error is why the operator cannot log in to the host; empty when it can.
	Error string `json:"error,omitempty"`
	// Found has the facts of the host and the data that its agent has collected; nil if the agent has not reported.
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
