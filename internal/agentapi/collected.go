package agentapi

import "github.com/windows-machine-config/wmco/internal/host"

// Collected is the state of a host for a support case. It contains no secrets: no environment, no content of
// files, and command lines only for services of the operator.
type Collected struct {
	// Services holds all services of Windows.
	Services  []ServiceState     `json:"services,omitempty"`
	Processes []host.Process     `json:"processes,omitempty"` // running from directories of the operator
	Networks  []host.HNSNetwork  `json:"networks,omitempty"`
	Endpoints []host.HNSEndpoint `json:"endpoints,omitempty"`
	// Firewall holds inbound rules for one port.
	Firewall []host.FirewallRule `json:"firewall,omitempty"`
	// Events holds events of the last week from Windows' event log that concern nodes, the newest of each log first.
	Events []Event `json:"events,omitempty"`
	// Runs holds the latest runs of agent commands that change the host or verify the node.
	Runs []Run `json:"runs,omitempty"`
	// Unknown holds the parts that Windows does not report, with the reason.
	Unknown map[string]string `json:"unknown,omitempty"`
}

// ServiceState is a service without possible secrets of its configuration.
type ServiceState struct {
	Name      string            `json:"name"`
	State     host.ServiceState `json:"state"`
	StartType host.StartType    `json:"startType"`
	PID       int               `json:"pid,omitempty"`
	ExitCode  int               `json:"exitCode,omitempty"` // of the last run of a stopped service
	// CommandLine is empty for foreign services.
	CommandLine string `json:"commandLine,omitempty"`
}

// Event is an event with the name of its log.
type Event struct {
	Log string `json:"log"`
	host.LoggedEvent
}

// Run is the output of the latest run of an agent command, without plans and facts.
type Run struct {
	Command Name   `json:"verb"`
	Lines   []Line `json:"lines"`
}
