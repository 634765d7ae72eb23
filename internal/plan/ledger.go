package plan

import "github.com/windows-machine-config/wmco/internal/host"

// Ledger is the state of each thing on the host before our first change of it. The agent writes an entry before it
// makes the change, so that a removal at any moment can give the host back as it was. Keys are names as on Windows.
type Ledger struct {
	// Removing is true from the begin of a removal on: nothing on the host is repaired any more.
	Removing bool `json:"removing,omitempty"`
	// HostName is the computer name before we set one.
	HostName string `json:"hostName,omitempty"`
	// Features are the states before we enabled them.
	Features map[string]host.FeatureState `json:"features,omitempty"`
	// Environment are variables before we set them; nil: not there.
	Environment map[string]*string `json:"environment,omitempty"`
	// Firewall are rules before we set them; nil: not there.
	Firewall map[string]*host.FirewallRule `json:"firewall,omitempty"`
	// Services are services before we configured them; nil: not there.
	Services map[string]*host.Service `json:"services,omitempty"`
	// StartTypes are the start types of services that are not ours, before we set them.
	StartTypes map[string]host.StartType `json:"startTypes,omitempty"`
	// StaticAddress is the registry's value about static addresses before we set it; nil: it was not set by us.
	StaticAddress *RegistryBefore `json:"staticAddress,omitempty"`
	// Paths are files, links and folders before we made them.
	Paths map[string]PathBefore `json:"paths,omitempty"`
	// TrustedCertificates are fingerprints of authorities that we have the machine trust; true: it did before us.
	TrustedCertificates map[string]bool `json:"trustedCertificates,omitempty"`
	// Routes are destinations that we keep a route to; true: it was there before us.
	Routes map[string]bool `json:"routes,omitempty"`
	// EventSource reports whether Windows knew the agent's event source before us; nil: it was not added.
	EventSource *bool `json:"eventSource,omitempty"`
	// Exclusions are those that we added to Microsoft Defender Antivirus. One that was there before us is not among them.
	Exclusions []host.Exclusion `json:"exclusions,omitempty"`
	// Refusal tells that Defender did not let us change its exclusions; nil: it did, or was not asked.
	Refusal *Refusal `json:"refusal,omitempty"`
	// RegistrationRefusal records that the adapter of kube-proxy's endpoint could not be kept out of DNS; nil: it could, or
	// the agent has not tried.
	RegistrationRefusal *Refusal `json:"registrationRefusal,omitempty"`
	// InUse are folders whose files were in use when the removal came to them, with the boot in which that was: they are
	// removed after the next one.
	InUse map[string]string `json:"inUse,omitempty"`
	// Networks are the HNS networks that our services make.
	Networks []string `json:"networks,omitempty"`
}

// Refusal means that Windows, or Microsoft Defender Antivirus, does not let us change something that a node works
// without. We try again after the next restart of the host and with the next verb that changes it.
type Refusal struct {
	BootID string `json:"bootID"`
	Reason string `json:"reason"`
}

// PathBefore is the former content of a path that we wrote to.
type PathBefore struct {
	Existed bool `json:"existed"`
	// Directory is true for a folder that existed.
	Directory bool `json:"directory,omitempty"`
	// Entries are the names in a folder that existed; they stay when the folder is given back.
	Entries []string `json:"entries,omitempty"`
	// Access is who could use a folder or file that existed.
	Access host.Access `json:"access,omitempty"`
	// Content is the content of a file that existed (configuration files only, so it is small).
	Content []byte `json:"content,omitempty"`
	// LinkTarget is the target of a link that existed.
	LinkTarget string `json:"linkTarget,omitempty"`
}
