package host

import "time"

// SystemInfo holds a Windows machine's facts about itself.
type SystemInfo struct {
	Product         string    `json:"product"`                   // "Windows Server 2022 Datacenter"
	Edition         string    `json:"edition"`                   // "ServerDatacenter"
	Version         string    `json:"version"`                   // "10.0.20348"
	Revision        int       `json:"revision"`                  // update build revision: 681 in 20348.681
	Architecture    string    `json:"architecture"`              // "amd64"
	HostName        string    `json:"hostName"`                  // DNS host name in force
	PendingHostName string    `json:"pendingHostName,omitempty"` // in force after the next reboot; empty when none waits
	Domain          string    `json:"domain,omitempty"`          // primary DNS suffix
	MachineID       string    `json:"machineID"`                 // stays the same over reboots; cloned images may share it
	BootID          string    `json:"bootID"`                    // differs after each boot
	BootTime        time.Time `json:"bootTime"`
	Addresses       []string  `json:"addresses"`               // IPv4, the default route's first; not that of SourceVIPEndpoint
	StaticAddress   bool      `json:"staticAddress,omitempty"` // the adapter of the default route does not use DHCP
	MemoryBytes     int64     `json:"memoryBytes"`
	FreeDiskBytes   int64     `json:"freeDiskBytes"` // of the system volume
	RebootPending   bool      `json:"rebootPending"`
	// SSHBlocked are the firewall profiles in which a group policy excludes the machine's own rules and has none for SSH.
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

// StartType is when Windows starts a service.
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

// ServiceConfig is everything that the service control manager keeps of a service.
type ServiceConfig struct {
	Name         string    `json:"name"`
	DisplayName  string    `json:"displayName,omitempty"`
	Description  string    `json:"description,omitempty"`
	CommandLine  string    `json:"commandLine"` // exact, quoted as by CommandLine
	StartType    StartType `json:"startType"`
	Dependencies []string  `json:"dependencies,omitempty"`
	Environment  []string  `json:"environment,omitempty"` // NAME=value
	// RestartDelays are the delays before the first, second, … restart after a crash; the last counts for all later ones.
	// Empty: no restart. A negative delay stands for another action, which is in Recovery.
	RestartDelays []time.Duration `json:"restartDelays,omitempty"`
	// ResetPeriod is the time without a crash after which the count starts again.
	ResetPeriod time.Duration `json:"resetPeriod,omitempty"`
	// Recovery is the complete recovery after crashes, if it is more than restarts after RestartDelays. Nil for services of
	// the operator. See FullRecovery and SetRecovery.
	Recovery *Recovery `json:"recovery,omitempty"`
	// DelayedStart is true if Windows starts the service some minutes after a boot. It counts for StartAutomatic only.
	DelayedStart bool `json:"delayedStart,omitempty"`
}

// Service is a service and its present state.
type Service struct {
	ServiceConfig
	State    ServiceState `json:"state"`
	PID      int          `json:"pid,omitempty"`
	ExitCode int          `json:"exitCode,omitempty"` // of the last run, when it is stopped
	// RunningCommandLine is what the present process was started with; it differs from CommandLine after a change without
	// restart.
	RunningCommandLine string `json:"runningCommandLine,omitempty"`
}

// Access says who may read and change a file or folder.
type Access string

const (
	// AccessInherited takes the permissions of the folder above.
	AccessInherited Access = "Inherited"
	// AccessAdministrators allows SYSTEM and the Administrators group only, and inherits nothing from above.
	AccessAdministrators Access = "Administrators"
	// AccessReadable is for folders: all users may read, but only SYSTEM and the Administrators group change what lies
	// directly in the folder; it inherits nothing from above. What is made below gets the permissions that a fresh Windows
	// hands down from C:\: users may read everything, and add to folders.
	AccessReadable Access = "Readable"
)

// Closed reports whether only SYSTEM and the Administrators group may change an entry that has the access.
func (a Access) Closed() bool { return a == AccessAdministrators || a == AccessReadable }

// WriteOptions says how a file is written.
type WriteOptions struct {
	Access Access
	// Exclusive fails with ErrExist when the file is there.
	Exclusive bool
	// Append adds to the end of a file that is there instead of replacing it, which then keeps its access. A writer that
	// is killed may leave a part of the addition.
	Append bool
}

// FileInfo describes one entry of a folder.
type FileInfo struct {
	Path       string    `json:"path"`
	Name       string    `json:"name"`
	Directory  bool      `json:"directory,omitempty"`
	Size       int64     `json:"size"`
	Modified   time.Time `json:"modified"`
	LinkTarget string    `json:"linkTarget,omitempty"`
	Access     Access    `json:"access"`
	// Foreign is true when an account other than SYSTEM, Administrators and TrustedInstaller owns the entry or has an
	// explicit right to change its permissions: what lies there, and how long, is up to that account.
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
	// Profiles are the kinds of networks that the rule is for.
	Profiles FirewallProfiles `json:"profiles,omitempty"`
}

// HNSNetwork is a network of the Host Networking Service.
type HNSNetwork struct {
	Name   string `json:"name"`
	Type   string `json:"type"`   // "Overlay"
	Subnet string `json:"subnet"` // CIDR
	// ManagementIP is the address of the adapter that the network uses; empty if Windows does not report it.
	ManagementIP string `json:"managementIP,omitempty"`
	// NoHostRoute is true if Windows lists policies of the network, and none of them lets the machine and the network's
	// endpoints reach each other. Where Windows lists no policy, nothing is known of them.
	NoHostRoute bool `json:"noHostRoute,omitempty"`
}

// HNSEndpoint is an endpoint on an HNS network.
type HNSEndpoint struct {
	Name    string `json:"name"`
	Network string `json:"network"`
	Address string `json:"address"`
	// Attached is true when something receives what is sent to the endpoint: the machine itself, or a container.
	Attached bool `json:"attached,omitempty"`
	// Adapter identifies the adapter that the machine has for an attached endpoint, as the registry names it ("{GUID}").
	// Empty for an endpoint of a container, and while Windows shows no such adapter.
	Adapter string `json:"adapter,omitempty"`
}

// SourceVIPEndpoint is the name of the endpoint that is attached to the machine for kube-proxy. By it the adapter is
// known that Windows makes then: it never has the machine's own address or default route.
const SourceVIPEndpoint = "VIPEndpoint"

// Process is a running process.
type Process struct {
	PID    int    `json:"pid"`
	Parent int    `json:"parent"`
	Name   string `json:"name"` // "containerd-shim-runhcs-v1.exe"
	Path   string `json:"path"`
	// Started is when it began, by the host's clock as it was then. Zero where Windows does not tell.
	Started time.Time `json:"-"`
}

// RuntimeStatus is a container runtime's own report.
type RuntimeStatus struct {
	Name    string `json:"name"`    // "containerd"
	Version string `json:"version"` // "v2.4.2"
	Ready   bool   `json:"ready"`
}

// Sandbox is a pod as the container runtime knows it.
type Sandbox struct {
	ID        string `json:"id"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"` // of the pod
}

// EventLevel is how much an event matters.
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
	ID      uint32     `json:"id"` // 1 to 1000, which is what the message file of Windows' eventcreate.exe covers
	Message string     `json:"message"`
}

// LoggedEvent is an event as it is in a log.
type LoggedEvent struct {
	Time time.Time `json:"time"`
	Event
}
