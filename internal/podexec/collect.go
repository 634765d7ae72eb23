package podexec

import "encoding/json"

// kubectl windows gather runs CollectCommand of the operator's program. CollectTimeout is the flag for the time
// limit of one host. Either side may be of an earlier or a later release than the other side.
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
	// Logs requests the ends of the logs of the host's services, too.
	Logs bool `json:"logs,omitempty"`
}

// CollectReport is the output of the command for one host, written as a separate line when available.
type CollectReport struct {
	Name string `json:"name"`
	// Error is the reason for a failed login to the host; empty after a successful login.
	Error string `json:"error,omitempty"`
	// Found contains the facts of the host and the data collected by its agent; nil if the agent has not reported.
	Found json.RawMessage `json:"found,omitempty"`
	// Plan describes the pending changes of the host, or the reason that these are unknown.
	Plan string `json:"plan,omitempty"`
	// Runs describes the output of the latest agent commands on the host.
	Runs string `json:"runs,omitempty"`
	// Logs holds the ends of the logs of services.
	Logs map[string][]byte `json:"logs,omitempty"`
	// Gaps lists the data that could not be read after a successful login.
	Gaps []string `json:"gaps,omitempty"`
}
