// Package plan compares the facts of a host with its spec and returns the required steps. The package is pure: the
// same facts and the same spec always result in the same steps, and after these steps no more steps are needed.
package plan

import (
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Facts are the agent's findings on the host. If gathered without a spec, only System, Agent, Time, Payload, Ledger,
// Applied, RollbackTarget, their agents, NoRollbackReason, RollbackReleases, NodeName and PodSubnet are set.
type Facts struct {
	Time   time.Time       `json:"time"` // the host's clock
	System host.SystemInfo `json:"system"`
	Agent  Agent           `json:"agent"`
	// Applied is the digest of the last spec that was applied completely; empty for none.
	Applied string `json:"applied,omitempty"`
	// AppliedAgent is the SHA-256 of the agent that applied this spec; empty if the agent is no longer on the host.
	AppliedAgent string `json:"appliedAgent,omitempty"`
	// NoRollbackReason is the reason why this spec cannot become the rollback target when another spec is applied;
	// empty for none.
	NoRollbackReason string `json:"noFallback,omitempty"`
	// RollbackTarget is the digest of the rollback target; empty if none is kept.
	RollbackTarget string `json:"fallback,omitempty"`
	// RollbackAgent is the SHA-256 of the agent that applied the rollback target and would roll back the host;
	// empty if the agent is no longer on the host.
	RollbackAgent string `json:"fallbackAgent,omitempty"`
	// RollbackReleases are the directories of releases that the rollback target needs and that therefore are not stale.
	RollbackReleases []string `json:"kept,omitempty"`
	// Payload maps the sha256 of payload files that are complete on the host to their paths.
	Payload map[string]string `json:"payload,omitempty"`
	// NodeName is the name of the Node in the last spec; empty without a spec.
	NodeName string `json:"nodeName,omitempty"`
	// PodSubnet is the subnet of the host's pods in the last spec; empty for none.
	PodSubnet string `json:"podSubnet,omitempty"`
	// Ledger is the original state of the host.
	Ledger Ledger `json:"ledger"`

	Features    map[string]host.FeatureState `json:"features,omitempty"`
	Files       map[string]FileFact          `json:"files,omitempty"` // in the spec or the ledger; includes directories and links
	Environment map[string]string            `json:"environment,omitempty"`
	Firewall    map[string]host.FirewallRule `json:"firewall,omitempty"`
	Services    map[string]host.Service      `json:"services,omitempty"` // in the spec or the ledger, or owned by the operator
	// HNS are the Windows services for container networks, by name. HNSSilent is the reason why Networks and
	// Endpoints are unknown: the Host Networking Service does not respond.
	HNS       map[string]host.Service `json:"hns,omitempty"`
	HNSSilent string                  `json:"hnsSilent,omitempty"`
	// DevicelessDisabled is the registry value DeviceLessNicDisabled; nil if unset.
	DevicelessDisabled *uint32 `json:"devicelessDisabled,omitempty"`
	// Login is the service for the operator's SSH sessions.
	Login     LoginFacts         `json:"login,omitzero"`
	Networks  []host.HNSNetwork  `json:"networks,omitempty"`
	Endpoints []host.HNSEndpoint `json:"endpoints,omitempty"`
	// RegisteringAdapter identifies the adapter of kube-proxy's endpoint if the adapter registers in DNS; empty
	// otherwise.
	RegisteringAdapter string         `json:"registeringAdapter,omitempty"`
	Processes          []host.Process `json:"processes,omitempty"` // that run from the operator's directories
	Identity           IdentityFacts  `json:"identity"`
	// KubeletStarted is the start time of the kubelet's service process, by the host's clock. It is zero while the
	// process does not run, or if the time is later than Time.
	KubeletStarted time.Time `json:"kubeletStarted,omitzero"`
	// Identities are the facts of the spec's additional identities, by the identity's name.
	Identities map[string]IdentityFacts `json:"identities,omitempty"`
	// TrustedCertificates are the fingerprints in the root store that are listed in the spec, in the ledger or by a
	// legacy operator.
	TrustedCertificates []string `json:"trustedCertificates,omitempty"`
	// ImportedCertificates are the fingerprints that a legacy operator lists as imported.
	ImportedCertificates []string `json:"importedCertificates,omitempty"`
	// Routes are the destinations in the spec or the ledger that are reached through the adapter of the default
	// route.
	Routes []string `json:"routes,omitempty"`
	// NoDefaultRoute is true if the host has no default route. The field is set only if the spec or the ledger
	// contains a route.
	NoDefaultRoute bool `json:"noDefaultRoute,omitempty"`
	// EventSource reports whether the agent's event source is registered in Windows.
	EventSource bool `json:"eventSource,omitempty"`
	// Antivirus is the state of Microsoft Defender Antivirus.
	Antivirus AntivirusFacts `json:"antivirus"`
	// Closed reports whether access to C:\k, the agent's directory and its inbox is limited to SYSTEM and
	// administrators. Only the agent command inspect sets Closed.
	Closed bool `json:"closed,omitempty"`
	// APIServer reports whether the host can connect to the API server; nil if not requested.
	APIServer *APIServerFacts `json:"apiServer,omitempty"`
	// CloudName is the machine's name in the cloud; nil if not requested.
	CloudName *CloudNameFacts `json:"cloudName,omitempty"`
}

// CloudNameFacts are the response of the cloud's metadata service to a request for the machine's name.
type CloudNameFacts struct {
	Platform string `json:"platform"` // "AWS"
	Name     string `json:"name,omitempty"`
	// Error is the reason, for an administrator, why the name is unknown; empty if known.
	Error string `json:"error,omitempty"`
}

// APIServerFacts are the result of an attempt to connect from the host to the API server.
type APIServerFacts struct {
	URL string `json:"url"` // as requested: https://api-int.<cluster>.<domain>:6443
	// Resolved are the addresses of the URL's host as resolved on the host, IPv4 first; none if the name does not
	// resolve.
	Resolved []string `json:"resolved,omitempty"`
	// Error is the reason, for an administrator, why the API server is unreachable; empty if the name was resolved
	// and a TCP connection was established.
	Error string `json:"error,omitempty"`
}

// AntivirusFacts describe the state of Microsoft Defender Antivirus.
type AntivirusFacts struct {
	// Active is true if Defender is active. Otherwise the other fields are unknown.
	Active bool `json:"atWork,omitempty"`
	// Unknown is the reason why Defender's exclusions cannot be read; empty for none.
	Unknown string `json:"unknown,omitempty"`
	// Exclusions are Defender's exclusions that are in the spec or the ledger.
	Exclusions []host.Exclusion `json:"exclusions,omitempty"`
}

// Agent is the running agent.
type Agent struct {
	Version string `json:"version"`
	Path    string `json:"path"`
	SHA256  string `json:"sha256"`
}

// FileFact describes the file at a path.
type FileFact struct {
	Directory  bool        `json:"directory,omitempty"`
	SHA256     string      `json:"sha256,omitempty"` // of files
	Size       int64       `json:"size,omitempty"`
	LinkTarget string      `json:"linkTarget,omitempty"`
	Access     host.Access `json:"access"`
	// Foreign is true if a non-administrator owns the path or may change its permissions.
	Foreign bool `json:"foreign,omitempty"`
	// Text is the sha256 of a configuration file's content with Unix line ends; see TextDigest.
	Text string `json:"text,omitempty"`
	// Listed is true for a directory with gathered entries.
	Listed bool `json:"listed,omitempty"`
	// Entries are the names in a directory that existed originally, or that the spec no longer lists.
	Entries []string `json:"entries,omitempty"`
}

// IdentityFacts describe the key and the certificate of an identity on the host. Facts never contain the private
// key.
type IdentityFacts struct {
	// Request is the PEM certificate request for the pending key on the host; empty if no key is pending.
	Request string `json:"request,omitempty"`
	// Current is the certificate in use; nil if there is none or the certificate does not match its key.
	Current *CertificateFacts `json:"current,omitempty"`
}

// CertificateFacts describe a certificate.
type CertificateFacts struct {
	CommonName   string    `json:"commonName"`
	Organization []string  `json:"organization"`
	Serial       string    `json:"serial"`
	NotBefore    time.Time `json:"notBefore"`
	NotAfter     time.Time `json:"notAfter"`
}
