package verb

import "github.com/windows-machine-config/wmco/internal/host"

// Collected is how a host is, for a support case. It has no secrets: no environment, no content of files, and command
// lines of our own services only.
type Collected struct {
	// Services are all of Windows' services.
	Services  []ServiceState     `json:"services,omitempty"`
	Processes []host.Process     `json:"processes,omitempty"` // that run from our folders
	Networks  []host.HNSNetwork  `json:"networks,omitempty"`
	Endpoints []host.HNSEndpoint `json:"endpoints,omitempty"`
	// Firewall are inbound rules for one port.
	Firewall []host.FirewallRule `json:"firewall,omitempty"`
	// Events are from Windows' event log: those of the last week that concern nodes, of each log the newest first.
	Events []Event `json:"events,omitempty"`
	// Runs are the last ones of verbs that change the host or prove the node.
	Runs []Run `json:"runs,omitempty"`
	// Unknown are the parts that Windows does not tell, with the reason.
	Unknown map[string]string `json:"unknown,omitempty"`
}

// ServiceState is a service without what may be secret in its configuration.
type ServiceState struct {
	Name      string            `json:"name"`
	State     host.ServiceState `json:"state"`
	StartType host.StartType    `json:"startType"`
	PID       int               `json:"pid,omitempty"`
	ExitCode  int               `json:"exitCode,omitempty"` // of the last run, when it is stopped
	// CommandLine is empty for services that are not ours.
	CommandLine string `json:"commandLine,omitempty"`
}

// Event is an event with the log that it is in.
type Event struct {
	Log string `json:"log"`
	host.LoggedEvent
}

// Run is what a verb has said when it was run last, without plans and facts.
type Run struct {
	Verb  Name   `json:"verb"`
	Lines []Line `json:"lines"`
}
