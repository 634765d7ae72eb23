package host

import "time"

// SystemInfo holds the facts that a Windows machine reports about itself.
type SystemInfo struct {
	Product         string    `json:"product"`                   // "Windows Server 2022 Datacenter"
	Edition         string    `json:"edition"`                   // "ServerDatacenter"
	Version         string    `json:"version"`                   // "10.0.20348"
	Revision        int       `json:"revision"`                  // update build revision: 681 in 20348.681
	Architecture    string    `json:"architecture"`              // "amd64"
	HostName        string    `json:"hostName"`                  // current DNS host name
	PendingHostName string    `json:"pendingHostName,omitempty"` // after the next reboot, if a change is pending
	Domain          string    `json:"domain,omitempty"`          // primary DNS suffix
	MachineID       string    `json:"machineID"`                 // unchanged by reboots; cloned images may share it
	BootID          string    `json:"bootID"`                    // differs after each boot
	BootTime        time.Time `json:"bootTime"`
	Addresses       []string  `json:"addresses"`               // IPv4, default route first; not of SourceVIPEndpoint
	StaticAddress   bool      `json:"staticAddress,omitempty"` // the adapter of the default route does not use DHCP
	MemoryBytes     int64     `json:"memoryBytes"`
	FreeDiskBytes   int64     `json:"freeDiskBytes"` // of the system volume
	RebootPending   bool      `json:"rebootPending"`
	// SSHBlocked lists the firewall profiles that block SSH: a group policy disables the machine's own rules and has
	// no rule for SSH.
	SSHBlocked []FirewallProfiles `json:"sshBlocked,omitempty"`
}

// FeatureState is the state of an optional feature.
type FeatureState string

// States of a feature.
const (
	FeatureUnknown        FeatureState = "Unknown"
	FeatureDisabled       FeatureState = "Disabled"
	FeatureEnabled        FeatureState = "Enabled"
	FeatureEnablePending  FeatureState = "EnablePending"
	FeatureDisablePending FeatureState = "DisablePending"
)

// StartType determines when Windows starts a service.
type StartType string

// Start types.
const (
	StartAutomatic StartType = "Automatic"
	StartManual    StartType = "Manual"
	StartDisabled  StartType = "Disabled"
)

// ServiceState is the state of a service.
type ServiceState string

// States of a service.
const (
	ServiceStopped      ServiceState = "Stopped"
	ServiceStartPending ServiceState = "StartPending"
	ServiceRunning      ServiceState = "Running"
	ServiceStopPending  ServiceState = "StopPending"
)

// ServiceConfig is the configuration of a service in the service control manager.
type ServiceConfig struct {
	Name         string    `json:"name"`
	DisplayName  string    `json:"displayName,omitempty"`
	Description  string    `json:"description,omitempty"`
	CommandLine  string    `json:"commandLine"` // exact, quoted by CommandLine
	StartType    StartType `json:"startType"`
	Dependencies []string  `json:"dependencies,omitempty"`
	Environment  []string  `json:"environment,omitempty"` // NAME=value
	// RestartDelays are the delays before the first, second, … restart after a crash. The last delay applies to all
	// later crashes. Empty means no restart. A negative delay represents another action, which Recovery contains.
	RestartDelays []time.Duration `json:"restartDelays,omitempty"`
	// ResetPeriod is the time without a crash after which Windows resets the crash count.
	ResetPeriod time.Duration `json:"resetPeriod,omitempty"`
	// Recovery is the complete recovery after crashes, if RestartDelays cannot express it. Recovery is nil for
	// services of the operator. See FullRecovery and SetRecovery.
	Recovery *Recovery `json:"recovery,omitempty"`
	// DelayedStart is true if Windows starts the service some minutes after a boot. It applies to StartAutomatic
	// only.
	DelayedStart bool `json:"delayedStart,omitempty"`
}

// Service is a service and its current state.
type Service struct {
	ServiceConfig
	State    ServiceState `json:"state"`
	PID      int          `json:"pid,omitempty"`
	ExitCode int          `json:"exitCode,omitempty"` // of the last run, if stopped
	// RunningCommandLine is the command line of the running process. It differs from CommandLine after a change
	// without restart.
	RunningCommandLine string `json:"runningCommandLine,omitempty"`
}

// Access defines the permissions of a file or directory.
type Access string

const (
	// AccessInherited inherits the permissions of the parent directory.
	AccessInherited Access = "Inherited"
	// AccessAdministrators allows access only to SYSTEM and the Administrators group, and inherits no permissions.
	AccessAdministrators Access = "Administrators"
	// AccessReadable is for directories. All users may read, only SYSTEM and the Administrators group may change the
	// direct entries, and no permissions are inherited. New entries below get the default permissions below C:\ of a
	// new Windows installation: users may read everything and add entries to directories.
	AccessReadable Access = "Readable"
)

// IsRestricted reports whether only SYSTEM and the Administrators group may change an entry with this access.
func (a Access) IsRestricted() bool { return a == AccessAdministrators || a == AccessReadable }

// WriteOptions specifies how a file is written.
type WriteOptions struct {
	Access Access
	// Exclusive fails with ErrExist if the file exists.
	Exclusive bool
	// Append appends to an existing file instead of replacing it, and keeps the access of the file. A killed writer
	// may leave a part of the addition.
	Append bool
}

// FileInfo describes one entry of a directory.
type FileInfo struct {
	Path       string    `json:"path"`
	Name       string    `json:"name"`
	Directory  bool      `json:"directory,omitempty"`
	Size       int64     `json:"size"`
	Modified   time.Time `json:"modified"`
	LinkTarget string    `json:"linkTarget,omitempty"`
	Access     Access    `json:"access"`
	// Foreign is true if an account other than SYSTEM, Administrators and TrustedInstaller owns the entry or has an
	// explicit right to change its permissions. That account controls the content and the existence of the entry.
	Foreign bool `json:"foreign,omitempty"`
}

// FirewallRule is an inbound rule. Name identifies it.
type FirewallRule struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Protocol    string `json:"protocol"` // "TCP" or "UDP"
	LocalPort   int    `json:"localPort"`
	Enabled     bool   `json:"enabled"`
	Allow       bool   `json:"allow"`
	// Profiles are the network profiles of the rule.
	Profiles FirewallProfiles `json:"profiles,omitempty"`
}

// HNSNetwork is a network of the Host Networking Service.
type HNSNetwork struct {
	Name   string `json:"name"`
	Type   string `json:"type"`   // "Overlay"
	Subnet string `json:"subnet"` // CIDR
	// ManagementIP is the address of the network's adapter, or empty if Windows does not report it.
	ManagementIP string `json:"managementIP,omitempty"`
	// NoHostRoute is true if Windows lists policies of the network and none of the policies lets the machine and the
	// network's endpoints reach each other. If Windows lists no policy, their reachability is unknown.
	NoHostRoute bool `json:"noHostRoute,omitempty"`
}

// HNSEndpoint is an endpoint on an HNS network.
type HNSEndpoint struct {
	Name    string `json:"name"`
	Network string `json:"network"`
	Address string `json:"address"`
	// Attached is true if the machine or a container receives the packets for the endpoint.
	Attached bool `json:"attached,omitempty"`
	// Adapter is the registry name ("{GUID}") of the machine's adapter for an attached endpoint. It is empty for a
	// container's endpoint and while Windows reports no such adapter.
	Adapter string `json:"adapter,omitempty"`
}

// SourceVIPEndpoint is the name of the endpoint that is attached to the machine for kube-proxy. The name identifies
// the resulting adapter, which never has the machine's own address or default route.
const SourceVIPEndpoint = "VIPEndpoint"

// Process is a running process.
type Process struct {
	PID    int    `json:"pid"`
	Parent int    `json:"parent"`
	Name   string `json:"name"` // "containerd-shim-runhcs-v1.exe"
	Path   string `json:"path"`
	// Started is the start time according to the host clock at the start, or zero if Windows does not report it.
	Started time.Time `json:"-"`
}

// RuntimeStatus is the status reported by a container runtime.
type RuntimeStatus struct {
	Name    string `json:"name"`    // "containerd"
	Version string `json:"version"` // "v2.4.2"
	Ready   bool   `json:"ready"`
}

// Sandbox is a pod in the container runtime.
type Sandbox struct {
	ID        string `json:"id"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"` // of the pod
}

// EventLevel is the severity of an event.
type EventLevel string

// Levels of events.
const (
	EventInformation EventLevel = "Information"
	EventWarning     EventLevel = "Warning"
	EventError       EventLevel = "Error"
)

// Event is an entry of the event log.
type Event struct {
	Source  string     `json:"source"` // "windows-instance-config-daemon"
	Level   EventLevel `json:"level"`
	ID      uint32     `json:"id"` // 1 to 1000, the range of the message file of Windows' eventcreate.exe
	Message string     `json:"message"`
}

// LoggedEvent is an event read from a log.
type LoggedEvent struct {
	Time time.Time `json:"time"`
	Event
}
