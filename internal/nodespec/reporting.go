package nodespec

import "strings"

// ConditionConfiguration is the type of the Node condition in which the agent says whether its host matches the
// NodeSpec. The agent writes it with the kubelet's certificate; the operator writes it only when the agent is silent.
// An administrator of the host controls the condition: the operator decides by it only to connect to the host and check it.
const ConditionConfiguration = "WindowsConfiguration"

// Reasons of the condition.
const (
	// ConfigurationInSync: the host matches its NodeSpec.
	ConfigurationInSync = "InSync"
	// ConfigurationRepaired: something differed, and the agent has put it back.
	ConfigurationRepaired = "Repaired"
	// ConfigurationDrifted: something differs, and the agent could not put it back.
	ConfigurationDrifted = "Drifted"
	// ConfigurationNeedsOperator: something differs that only the operator restores, such as the agent's own service.
	ConfigurationNeedsOperator = "NeedsOperator"
	// ConfigurationAgentSilent: the agent has not written for some time.
	ConfigurationAgentSilent = "AgentSilent"
)

// Reporting says how the agent publishes the condition of its host.
type Reporting struct {
	// URL is the host's Node at the internal API server.
	URL string `json:"url"`
	// CAFile has the authorities that the API server's certificate may be of.
	CAFile string `json:"caFile"`
}

func reporting(in Inputs) *Reporting {
	return &Reporting{
		URL:    strings.TrimRight(in.Cluster.APIServerInternalURL, "/") + "/api/v1/nodes/" + in.Instance.NodeName,
		CAFile: apiServerCAFile,
	}
}
