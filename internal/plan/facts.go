// Package plan compares the facts of a host with its spec and returns the steps to take. It is pure: the same facts and
// the same spec always give the same steps, and after the steps no more are needed.
package plan

import (
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Facts are the agent's findings on the host. Gathered without a spec, only System, Agent, Time, Payload, Ledger,
// Applied, Fallback, their agents, NoFallback, Kept, NodeName and PodSubnet are set.
type Facts struct {
	Time   time.Time       `json:"time"` // the host's clock
	System host.SystemInfo `json:"system"`
	Agent  Agent           `json:"agent"`
	// Applied is the digest of the spec that was last applied to its end; empty when none was.
	Applied string `json:"applied,omitempty"`
	// AppliedAgent is the SHA-256 of the agent that has applied it; empty when that agent is not on the host any more.
	AppliedAgent string `json:"appliedAgent,omitempty"`
	// NoFallback says why that spec could not be kept for a rollback if another were applied; empty when it could.
	NoFallback string `json:"noFallback,omitempty"`
	// Fallback is the digest of the spec that a rollback goes back to; empty when none is kept.
	Fallback string `json:"fallback,omitempty"`
	// FallbackAgent is the SHA-256 of the agent that has applied that spec, and rolls the host back to it; empty when that
	// agent is not on the host any more.
	FallbackAgent string `json:"fallbackAgent,omitempty"`
	// Kept are the folders of the releases that the fallback needs: they are not stale.
	Kept []string `json:"kept,omitempty"`
	// Payload are the payload files that lie complete on the host, sha256 to path.
	Payload map[string]string `json:"payload,omitempty"`
	// NodeName is the name of the Node in the last spec; empty without a spec.
	NodeName string `json:"nodeName,omitempty"`
	// PodSubnet is the subnet in the last spec, from which the host's pods have their addresses; empty when it had none.
	PodSubnet string `json:"podSubnet,omitempty"`
	// Ledger is what the host was like before we changed it.
	Ledger Ledger `json:"ledger"`

	Features    map[string]host.FeatureState `json:"features,omitempty"`
	Files       map[string]FileFact          `json:"files,omitempty"` // files, folders and links that the spec or the ledger names
	Environment map[string]string            `json:"environment,omitempty"`
	Firewall    map[string]host.FirewallRule `json:"firewall,omitempty"`
	Services    map[string]host.Service      `json:"services,omitempty"` // named by the spec or the ledger, and all of ours
	// HNS are the Windows services of networks of containers, by name; HNSSilent is why Networks and Endpoints are not
	// known: the Host Networking Service does not answer.
	HNS       map[string]host.Service `json:"hns,omitempty"`
	HNSSilent string                  `json:"hnsSilent,omitempty"`
	// DevicelessDisabled is the registry's value DeviceLessNicDisabled; nil when it is not there.
	DevicelessDisabled *uint32 `json:"devicelessDisabled,omitempty"`
	// Login is the service through which the operator logs in.
	Login     LoginFacts         `json:"login,omitzero"`
	Networks  []host.HNSNetwork  `json:"networks,omitempty"`
	Endpoints []host.HNSEndpoint `json:"endpoints,omitempty"`
	// RegisteringAdapter identifies the adapter of kube-proxy's endpoint if it registers in DNS; else empty.
	RegisteringAdapter string         `json:"registeringAdapter,omitempty"`
	Processes          []host.Process `json:"processes,omitempty"` // that run from our folders
	Identity           IdentityFacts  `json:"identity"`
	// KubeletStarted is the time at which the process of the kubelet's service began, by the host's clock; zero while it does
	// not run, or if the time is later than Time.
	KubeletStarted time.Time `json:"kubeletStarted,omitzero"`
	// Identities are the facts of the spec's further identities, by the identity's name.
	Identities map[string]IdentityFacts `json:"identities,omitempty"`
	// TrustedCertificates are the fingerprints that the spec, the ledger or an older operator names and that are in the
	// store of roots.
	TrustedCertificates []string `json:"trustedCertificates,omitempty"`
	// ImportedCertificates are the fingerprints of those that an older operator says it has put there.
	ImportedCertificates []string `json:"importedCertificates,omitempty"`
	// Routes are the destinations that the spec or the ledger names and that are reached through the default route's
	// adapter.
	Routes []string `json:"routes,omitempty"`
	// NoDefaultRoute is true when there is no such adapter. It is known only where a route is named.
	NoDefaultRoute bool `json:"noDefaultRoute,omitempty"`
	// EventSource reports whether Windows knows the agent's event source.
	EventSource bool `json:"eventSource,omitempty"`
	// Antivirus is Microsoft Defender Antivirus.
	Antivirus AntivirusFacts `json:"antivirus"`
	// Closed reports whether only SYSTEM and administrators can use C:\k, the agent's folder and its inbox. Of the verb look.
	Closed bool `json:"closed,omitempty"`
	// APIServer is whether the host reaches the API server; nil when that was not asked.
	APIServer *APIServerFacts `json:"apiServer,omitempty"`
	// CloudName is the name by which the cloud knows the machine; nil when that was not asked.
	CloudName *CloudNameFacts `json:"cloudName,omitempty"`
}

// CloudNameFacts are the answer of the cloud's metadata service to the request for the machine's name.
type CloudNameFacts struct {
	Platform string `json:"platform"` // "AWS"
	Name     string `json:"name,omitempty"`
	// Error is, in words for an administrator, why the name is not known; empty when it is.
	Error string `json:"error,omitempty"`
}

// APIServerFacts are the result of an attempt to connect from the host to the API server.
type APIServerFacts struct {
	URL string `json:"url"` // as it was asked: https://api-int.<cluster>.<domain>:6443
	// Resolved are the addresses of its host on this machine, IPv4 first; none when the name does not resolve.
	Resolved []string `json:"resolved,omitempty"`
	// Error is, in words for an administrator, why it cannot be reached; empty when it was resolved and a TCP connection
	// was made.
	Error string `json:"error,omitempty"`
}

// AntivirusFacts are the state of Microsoft Defender Antivirus.
type AntivirusFacts struct {
	// AtWork is true when it scans. Only then the rest is known.
	AtWork bool `json:"atWork,omitempty"`
	// Unknown is why its exclusions cannot be read; empty when they can.
	Unknown string `json:"unknown,omitempty"`
	// Exclusions are its exclusions that the spec or the ledger names.
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
	// Foreign is true for what a user who is not an administrator owns, or may open to others.
	Foreign bool `json:"foreign,omitempty"`
	// Text is the sha256 of a configuration file's content with the line ends of Unix; see TextDigest.
	Text string `json:"text,omitempty"`
	// Listed is true for a folder whose entries were looked at.
	Listed bool `json:"listed,omitempty"`
	// Entries are the names in a folder that was there before us, or that the spec does not name any more.
	Entries []string `json:"entries,omitempty"`
}

// IdentityFacts are the key and the certificate of an identity on the host. The private key is never part of facts.
type IdentityFacts struct {
	// Request is the PEM certificate request for the key that waits on the host for its certificate; empty when none
	// waits.
	Request string `json:"request,omitempty"`
	// Current is the certificate in use; nil when there is none or it does not match its key.
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
