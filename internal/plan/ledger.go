package plan

import "github.com/windows-machine-config/wmco/internal/host"

// Ledger is the original state of each changed object on the host. The agent writes an entry before the first
// change, so that a removal can restore the host at any time. Keys are names as used by Windows.
type Ledger struct {
	// Removing is true from the start of a removal: drift is no longer repaired.
	Removing bool `json:"removing,omitempty"`
	// HostName is the original computer name.
	HostName string `json:"hostName,omitempty"`
	// Features are the original states of enabled features.
	Features map[string]host.FeatureState `json:"features,omitempty"`
	// Environment holds the original variables; nil: did not exist.
	Environment map[string]*string `json:"environment,omitempty"`
	// Firewall holds the original rules; nil: did not exist.
	Firewall map[string]*host.FirewallRule `json:"firewall,omitempty"`
	// Services holds the original services; nil: did not exist.
	Services map[string]*host.Service `json:"services,omitempty"`
	// StartTypes are the original start types of foreign services.
	StartTypes map[string]host.StartType `json:"startTypes,omitempty"`
	// StaticAddress is the original registry value for static addresses; nil: the value was not changed.
	StaticAddress *RegistryBefore `json:"staticAddress,omitempty"`
	// Paths holds the original files, links and directories.
	Paths map[string]PathBefore `json:"paths,omitempty"`
	// TrustedCertificates are fingerprints of authorities that the machine must trust; true: trusted originally.
	TrustedCertificates map[string]bool `json:"trustedCertificates,omitempty"`
	// Routes are destinations with a maintained route; true: the route existed originally.
	Routes map[string]bool `json:"routes,omitempty"`
	// EventSource reports whether the agent's event source was registered originally; nil: it was not added.
	EventSource *bool `json:"eventSource,omitempty"`
	// Exclusions are the exclusions added to Microsoft Defender Antivirus, without exclusions that existed
	// originally.
	Exclusions []host.Exclusion `json:"exclusions,omitempty"`
	// Refusal records that Defender refused a change of exclusions; nil: no change was tried, or all succeeded.
	Refusal *Refusal `json:"refusal,omitempty"`
	// RegistrationRefusal records that DNS registration of kube-proxy's endpoint adapter could not be disabled;
	// nil: disabled, or not tried.
	RegistrationRefusal *Refusal `json:"registrationRefusal,omitempty"`
	// InUse maps directories with files in use during the removal to the boot ID at that time. These directories
	// are removed after the next boot.
	InUse map[string]string `json:"inUse,omitempty"`
	// Networks are the HNS networks that the node's services create.
	Networks []string `json:"networks,omitempty"`
}

// Refusal means that Windows, or Microsoft Defender Antivirus, refuses a change that a node does not depend on. The
// change is retried after the next restart of the host and with the next agent command that requires the change.
type Refusal struct {
	BootID string `json:"bootID"`
	Reason string `json:"reason"`
}

// PathBefore is the original content of a changed path.
type PathBefore struct {
	Existed bool `json:"existed"`
	// Directory is true for a directory that existed.
	Directory bool `json:"directory,omitempty"`
	// Entries are the names in a directory that existed. A restoration of the directory keeps these entries.
	Entries []string `json:"entries,omitempty"`
	// Access is the original access of a directory or file.
	Access host.Access `json:"access,omitempty"`
	// Content is the content of a file that existed (configuration files only, so the content is small).
	Content []byte `json:"content,omitempty"`
	// LinkTarget is the target of a link that existed.
	LinkTarget string `json:"linkTarget,omitempty"`
}
