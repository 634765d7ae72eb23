package nodespec

import "strings"

// ConditionConfiguration is the type of the Node condition with which the agent reports whether its host matches
// the NodeSpec. The agent writes the condition with the kubelet's certificate; the operator writes the condition
// only when the agent is silent. An administrator of the host controls the condition, so the operator only uses it
// to decide whether to connect to the host for a check.
const ConditionConfiguration = "WindowsConfiguration"

// Reasons of the condition.
const (
	// ConfigurationInSync means that the host matches its NodeSpec.
	ConfigurationInSync = "InSync"
	// ConfigurationRepaired means that the agent found and repaired drift.
	ConfigurationRepaired = "Repaired"
	// ConfigurationDrifted means that the agent found drift and could not repair it.
	ConfigurationDrifted = "Drifted"
	// ConfigurationNeedsOperator means drift that only the operator repairs, such as in the agent's own service.
	ConfigurationNeedsOperator = "NeedsOperator"
	// ConfigurationAgentSilent means that the agent has not written for some time.
	ConfigurationAgentSilent = "AgentSilent"
)

// Reporting configures how the agent publishes the condition of its host.
type Reporting struct {
	// URL is the URL of the host's Node at the internal API server.
	URL string `json:"url"`
	// CAFile contains the authorities that may have signed the API server's certificate.
	CAFile string `json:"caFile"`
}

func newReporting(in Inputs) *Reporting {
	return &Reporting{
		URL:    strings.TrimRight(in.Cluster.APIServerInternalURL, "/") + "/api/v1/nodes/" + in.Instance.NodeName,
		CAFile: apiServerCAFile,
	}
}
