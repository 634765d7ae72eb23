package nodespec

import (
	"strings"
	"time"
)

// Places of the agent's identity. They are apart from AgentRoot, which the operator makes and deletes: what the agent itself makes is in the
// ledger, and goes by it.
const (
	reportingDirectory = Root + `\agent`
	reportingPKI       = reportingDirectory + `\pki`
)

// reportingLife is how long the certificate of the agent is good for: who steals it has it for no longer, and a host may be off over a weekend.
const reportingLife = 48 * time.Hour

// Reporting says how the agent tells the cluster how it finds the host.
type Reporting struct {
	// URL is the status of the node's report at the internal API server.
	URL string `json:"url"`
	// CAFile has the authorities that the API server's certificate may be of.
	CAFile string `json:"caFile"`
	// Identity is the name of the identity that the report is written as.
	Identity string `json:"identity"`
}

func reporting(in Inputs) *Reporting {
	reports := strings.TrimRight(in.Cluster.APIServerInternalURL, "/") +
		"/apis/windowsmachineconfig.openshift.io/v1alpha1/namespaces/" + in.Namespace + "/windowsnodereports/"
	return &Reporting{URL: reports + in.Instance.NodeName + "/status", CAFile: apiServerCAFile, Identity: ServiceAgent}
}

func reportingDirectories() []Directory {
	return []Directory{administrators(reportingDirectory), administrators(reportingPKI)}
}

// HoldsUp tells whether a node does not work while the need is unmet. It does without reports, so nobody waits for their certificate.
func (s NodeSpec) HoldsUp(need Need) bool {
	return s.Reporting == nil || need != NeedCertificateOf(s.Reporting.Identity)
}
