// Package host describes a Windows machine as its agent sees it: small interfaces, one per part of Windows, and the values
// they exchange. It has no behaviour of its own. internal/host/fake implements it in memory with Windows' semantics,
// internal/host/windows on Win32.
package host

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// Errors that every implementation returns (wrapped) for the same situation.
var (
	// ErrNotExist means that the named service, file, rule, network or process is not there. It is fs.ErrNotExist.
	ErrNotExist = fs.ErrNotExist
	// ErrExist means that something of that name is there already. It is fs.ErrExist.
	ErrExist = fs.ErrExist
	// ErrInUse means that Windows refuses the change because a process holds the file or the object.
	ErrInUse = errors.New("in use by a running process")
	// ErrDiskFull means that the volume has no room for what was to be written.
	ErrDiskFull = errors.New("there is not enough space on the disk")
	// ErrDependency means that a service cannot start because one that it depends on does not run.
	ErrDependency = errors.New("a service that this service depends on does not run")
	// ErrNoAntivirus means that Microsoft Defender Antivirus is not at work, so it cannot be asked.
	ErrNoAntivirus = errors.New("the antivirus Microsoft Defender is not at work")
	// ErrRefused means that a policy or tamper protection keeps also administrators from seeing or changing this.
	ErrRefused = errors.New("a policy or tamper protection does not allow it")
)

// Host is one Windows machine. All fields are set.
type Host struct {
	System      System
	Power       Power
	Features    Features
	Services    Services
	Files       Files
	Tree        Tree
	Environment Environment
	Firewall    Firewall
	Networks    Networks
	Processes   Processes
	Probes      Probes
	EventLog    EventLog
	Antivirus   Antivirus
	Outbound    Outbound
}

// System is what Windows says of itself.
type System interface {
	// Info reads the machine's present facts.
	Info(ctx context.Context) (SystemInfo, error)
	// SetHostName sets the computer name. It takes effect with the next reboot; until then Info shows it as PendingHostName.
	SetHostName(ctx context.Context, name string) error
}

// Power restarts the machine.
type Power interface {
	// Reboot asks Windows to restart now. It returns when Windows has accepted; the caller's process is ended with the rest.
	Reboot(ctx context.Context, reason string) error
}

// Features are Windows' optional features and roles.
type Features interface {
	// State tells how a feature stands; FeatureUnknown for a name that this edition does not have.
	State(ctx context.Context, name string) (FeatureState, error)
	// Enable turns a feature on. What needs a reboot is pending until then.
	Enable(ctx context.Context, name string) error
	// Disable turns a feature off. What needs a reboot is pending until then.
	Disable(ctx context.Context, name string) error
}

// Services is the service control manager.
type Services interface {
	// Query returns the named services, or all when none is named. A name that is not there is left out.
	Query(ctx context.Context, names ...string) ([]Service, error)
	// Configure creates the service or changes it in place to exactly this configuration. A running process keeps its old
	// command line until it is restarted.
	Configure(ctx context.Context, config ServiceConfig) error
	// Start starts a service, and what it depends on before it, and waits until it runs (ErrDependency, ErrNotExist).
	// Starting a running service is no error.
	Start(ctx context.Context, name string) error
	// Stop stops a service, and what depends on it before it, and waits until its process is gone.
	// Stopping a stopped service is no error.
	Stop(ctx context.Context, name string) error
	// Delete removes a stopped service.
	Delete(ctx context.Context, name string) error
}

// Files reads and writes files. Paths are absolute Windows paths (C:\k\kubelet.exe), compared without case.
type Files interface {
	// Stat describes a file, folder or symbolic link (not its target).
	Stat(ctx context.Context, path string) (FileInfo, error)
	// Open reads a file, following links. The caller closes it.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	// Write makes or replaces a file in one step: a reader sees the old content or the new, never a part. The folder must exist.
	Write(ctx context.Context, path string, content io.Reader, options WriteOptions) error
	// ReadDir lists a folder, sorted by name.
	ReadDir(ctx context.Context, path string) ([]FileInfo, error)
	// Remove removes a file, link or whole folder; no error when it is not there, ErrInUse when a process runs from it.
	Remove(ctx context.Context, path string) error
}

// Tree shapes the folder tree.
type Tree interface {
	// MakeDirectory makes one folder (its parent must exist) or sets the access of an existing one.
	MakeDirectory(ctx context.Context, path string, access Access) error
	// Symlink makes or replaces a symbolic link to a file or folder.
	Symlink(ctx context.Context, target, link string) error
	// Rename moves a file or folder on the same volume, replacing a file that is there.
	Rename(ctx context.Context, from, to string) error
}

// Environment is the machine-wide environment, which services see after a reboot.
type Environment interface {
	Get(ctx context.Context) (map[string]string, error)
	Set(ctx context.Context, name, value string) error
	Unset(ctx context.Context, name string) error
}

// Firewall is Windows Defender Firewall.
type Firewall interface {
	Rules(ctx context.Context) ([]FirewallRule, error)
	// SetRule makes or replaces the rule of that name.
	SetRule(ctx context.Context, rule FirewallRule) error
	DeleteRule(ctx context.Context, name string) error
}

// Networks is the Host Networking Service (HNS).
type Networks interface {
	Networks(ctx context.Context) ([]HNSNetwork, error)
	DeleteNetwork(ctx context.Context, name string) error
	Endpoints(ctx context.Context) ([]HNSEndpoint, error)
	// CreateEndpoint makes an endpoint with a free address of the named network.
	CreateEndpoint(ctx context.Context, network, name string) (HNSEndpoint, error)
	DeleteEndpoint(ctx context.Context, name string) error
}

// Processes is the process table.
type Processes interface {
	List(ctx context.Context) ([]Process, error)
	// Kill ends a process and waits until it is gone; no error when it is not there.
	Kill(ctx context.Context, pid int) error
	// Self is the caller's own process.
	Self() int
}

// Probes asks the node's components how they are, from the host itself.
type Probes interface {
	// HTTPGet asks an address on the host (http://127.0.0.1:10248/healthz) and returns the status code and the first KiB of the answer.
	HTTPGet(ctx context.Context, url string) (status int, body string, err error)
	// ContainerRuntime asks a CRI endpoint (npipe://./pipe/containerd-containerd).
	ContainerRuntime(ctx context.Context, endpoint string) (RuntimeStatus, error)
}

// EventLog is Windows' event log Application, where administrators look for what concerns them.
type EventLog interface {
	// Report writes an event. Its source need not be known: without it the viewer shows the message below a remark of its own.
	Report(ctx context.Context, event Event) error
	// KnowsSource tells whether Windows has a source of that name.
	KnowsSource(ctx context.Context, source string) (bool, error)
	// AddSource makes the source known, with which the viewer shows the message of its events and nothing else. No error when it is known.
	AddSource(ctx context.Context, source string) error
	// RemoveSource makes Windows forget the source; its events stay. No error when it is not known.
	RemoveSource(ctx context.Context, source string) error
}

// Antivirus is Microsoft Defender Antivirus. Only while it is at work it can be asked for its exclusions and told to change them
// (ErrNoAntivirus).
type Antivirus interface {
	// AtWork tells whether Defender scans on this machine; see DefenderAtWork.
	AtWork(ctx context.Context) (bool, error)
	// Exclusions are what it does not scan. ErrRefused when a policy hides them also from administrators.
	Exclusions(ctx context.Context) ([]Exclusion, error)
	// AddExclusion adds an exclusion, for good; no error when it is there. ErrRefused when Defender does not take it.
	AddExclusion(ctx context.Context, exclusion Exclusion) error
	// RemoveExclusion takes an exclusion away; no error when it is not there. ErrRefused when Defender does not let it go.
	RemoveExclusion(ctx context.Context, exclusion Exclusion) error
}

// Outbound is the way from the machine to others.
type Outbound interface {
	// LookupHost finds the addresses of a host's name, IPv4 and IPv6, as programs on the machine do: in the file hosts, then in DNS.
	// ErrNotExist when there is no such name.
	LookupHost(ctx context.Context, name string) (addresses []string, err error)
	// Connect makes a TCP connection to a port of an address (10.0.0.1:6443) and ends it again. Nothing is sent.
	Connect(ctx context.Context, address string) error
}

// SystemInfo is what a Windows machine says of itself.
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
	Addresses       []string  `json:"addresses"` // IPv4, the default route's first
	MemoryBytes     int64     `json:"memoryBytes"`
	FreeDiskBytes   int64     `json:"freeDiskBytes"` // of the system volume
	RebootPending   bool      `json:"rebootPending"`
}

// FeatureState is how an optional feature stands.
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

// ServiceState is how a service stands.
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
	// RestartDelays are the delays before the first, second, … restart after a crash; the last counts for all later ones. Empty: no restart.
	RestartDelays []time.Duration `json:"restartDelays,omitempty"`
	// ResetPeriod is the time without a crash after which the count starts anew.
	ResetPeriod time.Duration `json:"resetPeriod,omitempty"`
}

// Service is a service and its present state.
type Service struct {
	ServiceConfig
	State    ServiceState `json:"state"`
	PID      int          `json:"pid,omitempty"`
	ExitCode int          `json:"exitCode,omitempty"` // of the last run, when it is stopped
	// RunningCommandLine is what the present process was started with; it differs from CommandLine after a change without restart.
	RunningCommandLine string `json:"runningCommandLine,omitempty"`
}

// Access is who may read and change a file or folder.
type Access string

const (
	// AccessInherited takes the permissions of the folder above.
	AccessInherited Access = "Inherited"
	// AccessAdministrators allows SYSTEM and the Administrators group only, and inherits nothing from above.
	AccessAdministrators Access = "Administrators"
)

// WriteOptions says how a file is written.
type WriteOptions struct {
	Access Access
	// Exclusive fails with ErrExist when the file is there.
	Exclusive bool
	// Append adds to the end of a file that is there instead of replacing it, which then keeps its access. A writer that is killed may
	// leave a part of the addition.
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
}

// FirewallRule is an inbound rule. Name identifies it.
type FirewallRule struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Protocol    string `json:"protocol"` // "TCP" or "UDP"
	LocalPort   int    `json:"localPort"`
	Enabled     bool   `json:"enabled"`
	Allow       bool   `json:"allow"`
}

// HNSNetwork is a network of the Host Networking Service.
type HNSNetwork struct {
	Name   string `json:"name"`
	Type   string `json:"type"`   // "Overlay"
	Subnet string `json:"subnet"` // CIDR
}

// HNSEndpoint is an endpoint on an HNS network.
type HNSEndpoint struct {
	Name    string `json:"name"`
	Network string `json:"network"`
	Address string `json:"address"`
}

// Process is a running process.
type Process struct {
	PID    int    `json:"pid"`
	Parent int    `json:"parent"`
	Name   string `json:"name"` // "containerd-shim-runhcs-v1.exe"
	Path   string `json:"path"`
}

// RuntimeStatus is a container runtime's own word.
type RuntimeStatus struct {
	Name    string `json:"name"`    // "containerd"
	Version string `json:"version"` // "v2.4.2"
	Ready   bool   `json:"ready"`
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
