// Package host describes a Windows machine as its agent sees it: small interfaces, one per part of Windows, and the
// values they exchange. It has no behavior of its own. internal/host/fake implements it in memory with Windows'
// semantics, internal/host/windows on Win32.
package host

import (
	"context"
	"errors"
	"io"
	"io/fs"
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
	ErrNoAntivirus = errors.New("the antivirus Microsoft Defender is not active")
	// ErrDomainMember means that the machine is a member of a domain, which would not know it under another name.
	ErrDomainMember = errors.New("the machine is a member of a domain, which knows it by its name: " +
		"only an administrator of the domain can rename it")
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
	Sandboxes   Sandboxes
	Layers      Layers
	EventLog    EventLog
	Antivirus   Antivirus
	Outbound    Outbound
	Roots       Roots
	Routes      Routes
	Logs        Logs
	Metadata    Metadata
	Registry    Registry
}

// System returns the facts of Windows itself.
type System interface {
	// Info reads the machine's present facts.
	Info(ctx context.Context) (SystemInfo, error)
	// SetHostName sets the computer name. It takes effect with the next reboot; until then Info shows it as
	// PendingHostName.
	SetHostName(ctx context.Context, name string) error
}

// Power restarts the machine.
type Power interface {
	// Reboot asks Windows to restart now. It returns when Windows has accepted; the caller's process is ended with the
	// rest.
	Reboot(ctx context.Context, reason string) error
}

// Features are Windows' optional features and roles.
type Features interface {
	// State tells how a feature stands; FeatureUnknown for a name that this edition does not have.
	State(ctx context.Context, name string) (FeatureState, error)
	// Enable turns a feature on. What needs a reboot is pending until then. A caller that gives up has Windows told to
	// stop, and waits until it has: half a change must not be left. While Windows' servicing hangs, that is forever.
	Enable(ctx context.Context, name string) error
	// Disable turns a feature off. What needs a reboot is pending until then. A caller that gives up waits as for Enable.
	Disable(ctx context.Context, name string) error
}

// Services is the service control manager.
type Services interface {
	// Query returns the named services, or all when none is named. A name that is not there is left out.
	Query(ctx context.Context, names ...string) ([]Service, error)
	// Configure creates the service or changes it in place to exactly this configuration. A running process keeps its old
	// command line until it is restarted.
	Configure(ctx context.Context, config ServiceConfig) error
	// SetStartType changes when Windows starts a service, and nothing else of it (ErrNotExist).
	SetStartType(ctx context.Context, name string, start StartType) error
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
	// Write makes or replaces a file in one step: a reader sees the old content or the new, never a part. The folder must
	// exist.
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
	// CreateEndpoint makes an endpoint of the named network with this address, or with a free one when none is given.
	CreateEndpoint(ctx context.Context, network, name, address string) (HNSEndpoint, error)
	// AttachEndpoint gives the machine itself an adapter with the endpoint's address; no error when it has one. It is gone
	// after the next boot. Like any adapter it registers in DNS, unless the registry has another value for it.
	AttachEndpoint(ctx context.Context, name string) error
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

// Probes checks the state of the node's components from the host itself.
type Probes interface {
	// HTTPGet asks an address on the host (http://127.0.0.1:10248/healthz) and returns the status code and the first KiB
	// of the answer. client is a certificate with its key in PEM, which it shows to a server that asks for one; nil for none.
	HTTPGet(ctx context.Context, url string, client []byte) (status int, body string, err error)
	// ContainerRuntime asks a CRI endpoint (npipe://./pipe/containerd-containerd).
	ContainerRuntime(ctx context.Context, endpoint string) (RuntimeStatus, error)
}

// Sandboxes are the pods of a container runtime, at its CRI endpoint (npipe://./pipe/containerd-containerd).
type Sandboxes interface {
	// List returns all sandboxes, also those that have ended.
	List(ctx context.Context, endpoint string) ([]Sandbox, error)
	// End stops a sandbox with its containers, and removes it; no error when it is not there. Then nothing of it is
	// mounted any more.
	End(ctx context.Context, endpoint, id string) error
}

// Layers are the file systems of images and containers: folders that Windows' container platform mounts, with files that
// belong to Windows.
type Layers interface {
	// Destroy unmounts a layer that no container uses, and deletes its folder; no error when it is not there.
	Destroy(ctx context.Context, folder string) error
}

// EventLog is Windows' event log. What is written goes to the log Application, where administrators look for events.
type EventLog interface {
	// Read goes through the events of a log ("Application", "System"), the newest first, as long as each wants more.
	// ErrNotExist when there is no log of that name. If the log is cleared meanwhile, the events since then follow, except
	// for a log that is cleared several times: that is an error.
	Read(ctx context.Context, log string, each func(LoggedEvent) (more bool)) error
	// Report writes an event. Its source need not be known: without it the viewer shows the message below a remark of its
	// own.
	Report(ctx context.Context, event Event) error
	// KnowsSource reports whether Windows has a source of that name.
	KnowsSource(ctx context.Context, source string) (bool, error)
	// AddSource makes the source known, with which the viewer shows the message of its events and nothing else. No error
	// when it is known.
	AddSource(ctx context.Context, source string) error
	// RemoveSource makes Windows forget the source; its events stay. No error when it is not known.
	RemoveSource(ctx context.Context, source string) error
}

// Antivirus is Microsoft Defender Antivirus. Only while it is at work can its exclusions be read and changed
// (ErrNoAntivirus).
type Antivirus interface {
	// AtWork reports whether Defender scans on this machine; see DefenderAtWork.
	AtWork(ctx context.Context) (bool, error)
	// Exclusions are what it does not scan. ErrRefused when a policy hides them also from administrators.
	Exclusions(ctx context.Context) ([]Exclusion, error)
	// AddExclusion adds an exclusion, for good; no error when it is there. ErrRefused when Defender does not take it.
	AddExclusion(ctx context.Context, exclusion Exclusion) error
	// RemoveExclusion takes an exclusion away; no error when it is not there. ErrRefused when Defender does not let it go.
	RemoveExclusion(ctx context.Context, exclusion Exclusion) error
}

// Outbound makes connections from the machine to others.
type Outbound interface {
	// LookupHost finds the addresses of a host's name, IPv4 and IPv6, as programs on the machine do: in the file hosts,
	// then in DNS. ErrNotExist when there is no such name.
	LookupHost(ctx context.Context, name string) (addresses []string, err error)
	// Connect makes a TCP connection to a port of an address (10.0.0.1:6443) and ends it again. Nothing is sent.
	Connect(ctx context.Context, address string) error
}

// Roots is the machine's store of trusted root certification authorities, LocalMachine\Root. It shows the machine's own
// part together with those that group policies, Active Directory and Windows bring.
type Roots interface {
	// Fingerprints are the SHA-256 of the certificates in the store, in lower-case hex.
	Fingerprints(ctx context.Context) ([]string, error)
	// Add puts a certificate in DER into the machine's own part of the store; no error when it is there.
	Add(ctx context.Context, der []byte) error
	// Remove takes a certificate out of the machine's own part of the store; no error when it is not there. ErrRefused
	// when it is trusted all the same: a group policy, Active Directory or Windows itself brings it too.
	Remove(ctx context.Context, fingerprint string) error
}

// Routes are the IPv4 routes in force.
type Routes interface {
	// ViaDefault are the destinations, in CIDR form, of all routes through the adapter that the default route goes
	// through.
	ViaDefault(ctx context.Context) ([]string, error)
	// Add makes a route to the destination through the adapter and the gateway of the default route, until the next boot;
	// no error when it is there. ErrNotExist when there is no default route.
	Add(ctx context.Context, destination string) error
	// Delete takes the destination's routes through that adapter away; no error when there is none.
	Delete(ctx context.Context, destination string) error
}

// Logs are the log files of programs that append to them and do not rotate them.
type Logs interface {
	// Rotate copies the log to another file and empties it, while its writer goes on. What is written in between may be
	// lost. When the log cannot be emptied (ErrInUse: a program has it in its memory), there is no copy either.
	Rotate(ctx context.Context, path, to string) error
}

// Metadata is the metadata service of the cloud that the machine runs in.
type Metadata interface {
	// HostName is the name by which the platform (AWS, GCP) knows the machine: on AWS its private DNS name, on GCP the
	// instance's name. ErrNotExist for a platform that has no such service.
	HostName(ctx context.Context, platform string) (string, error)
}

// Registry are the numbers (REG_DWORD) below HKEY_LOCAL_MACHINE, in which Windows keeps settings that it has no calls
// for.
type Registry interface {
	// Number reads a number. ErrNotExist when it is not there.
	Number(ctx context.Context, at RegistryName) (uint32, error)
	// SetNumber sets a number, and makes its key when it is not there.
	SetNumber(ctx context.Context, at RegistryName, value uint32) error
	// Delete takes a value away; no error when it is not there.
	Delete(ctx context.Context, at RegistryName) error
}
