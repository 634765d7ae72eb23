// Package host describes a Windows machine from the agent's point of view: small interfaces, one per part of
// Windows, and the types that the interfaces exchange. The package contains no behavior. Package internal/host/fake
// implements the interfaces in memory with the semantics of Windows, and internal/host/windows implements them with
// Win32.
package host

import (
	"context"
	"errors"
	"io"
	"io/fs"
)

// Errors that every implementation returns, wrapped, for the same situation.
var (
	// ErrNotExist means that the named service, file, rule, network or process does not exist. It equals
	// fs.ErrNotExist.
	ErrNotExist = fs.ErrNotExist
	// ErrExist means that an object of that name already exists. It equals fs.ErrExist.
	ErrExist = fs.ErrExist
	// ErrInUse means that Windows rejects the change because a process holds the file or object.
	ErrInUse = errors.New("in use by a running process")
	// ErrDiskFull means that the volume has too little free space for the write.
	ErrDiskFull = errors.New("there is not enough space on the disk")
	// ErrDependency means that a service cannot start because a dependency does not run.
	ErrDependency = errors.New("a dependency of the service is not running")
	// ErrNoAntivirus means that Microsoft Defender Antivirus is not active and therefore cannot be queried.
	ErrNoAntivirus = errors.New("antivirus Microsoft Defender is not active")
	// ErrDomainMember means that the machine is a member of a domain, which would not recognize the machine under
	// another name.
	ErrDomainMember = errors.New("the machine is a member of a domain: " +
		"only an administrator of the domain can rename it")
	// ErrRefused means that a policy or tamper protection prevents even administrators from the read or the change.
	ErrRefused = errors.New("denied by a policy or by tamper protection")
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

// System provides the facts of Windows itself.
type System interface {
	// Info returns the current facts of the machine.
	Info(ctx context.Context) (SystemInfo, error)
	// SetHostName sets the computer name, which takes effect at the next reboot. Until then, Info reports the name
	// as PendingHostName.
	SetHostName(ctx context.Context, name string) error
}

// Power restarts the machine.
type Power interface {
	// Reboot requests an immediate restart and returns when Windows has accepted the request. The restart also ends
	// the caller's process.
	Reboot(ctx context.Context, reason string) error
}

// Features manages the optional features and roles of Windows.
type Features interface {
	// State returns the state of a feature, and FeatureUnknown for a name that this edition does not have.
	State(ctx context.Context, name string) (FeatureState, error)
	// Enable enables a feature. Changes that need a reboot stay pending until then. If ctx ends, Enable cancels the
	// operation in Windows and waits for its end, because a half-applied change must not remain. If the servicing of
	// Windows hangs, Enable never returns.
	Enable(ctx context.Context, name string) error
	// Disable disables a feature. Changes that need a reboot stay pending until then. If ctx ends, Disable waits
	// like Enable.
	Disable(ctx context.Context, name string) error
}

// Services is the service control manager.
type Services interface {
	// Query returns the named services, or all services if no name is given. Names without a service are omitted.
	Query(ctx context.Context, names ...string) ([]Service, error)
	// Configure creates the service or updates it in place to exactly this configuration. A running process keeps
	// the previous command line until it is restarted.
	Configure(ctx context.Context, config ServiceConfig) error
	// SetStartType changes only the start type of a service (ErrNotExist).
	SetStartType(ctx context.Context, name string, start StartType) error
	// Start starts the dependencies of a service and then the service, and waits until the service runs
	// (ErrDependency, ErrNotExist). Starting a running service is no error.
	Start(ctx context.Context, name string) error
	// Stop stops the dependents of a service and then the service, and waits until its process has ended. Stopping a
	// stopped service is no error.
	Stop(ctx context.Context, name string) error
	// Delete removes a stopped service.
	Delete(ctx context.Context, name string) error
}

// Files reads and writes files. Paths are absolute Windows paths (C:\k\kubelet.exe) and are compared without case.
type Files interface {
	// Stat describes a file, directory or symbolic link (not the target of the link).
	Stat(ctx context.Context, path string) (FileInfo, error)
	// Open opens a file for reading and follows links. The caller must close the file.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	// Write creates or replaces a file in one step: a reader sees the old or the new content, never a part. The
	// directory must exist.
	Write(ctx context.Context, path string, content io.Reader, options WriteOptions) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(ctx context.Context, path string) ([]FileInfo, error)
	// Remove removes a file, a link or a complete directory. A missing path is no error. Remove returns ErrInUse if
	// a process runs from the path.
	Remove(ctx context.Context, path string) error
}

// Tree changes the directory tree.
type Tree interface {
	// MakeDirectory creates one directory in an existing parent, or sets the access of an existing directory.
	MakeDirectory(ctx context.Context, path string, access Access) error
	// Symlink creates or replaces a symbolic link to a file or directory.
	Symlink(ctx context.Context, target, link string) error
	// Rename moves a file or directory on the same volume and replaces an existing file.
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
	// SetRule creates or replaces the rule of that name.
	SetRule(ctx context.Context, rule FirewallRule) error
	DeleteRule(ctx context.Context, name string) error
}

// Networks is the Host Networking Service (HNS).
type Networks interface {
	Networks(ctx context.Context) ([]HNSNetwork, error)
	DeleteNetwork(ctx context.Context, name string) error
	Endpoints(ctx context.Context) ([]HNSEndpoint, error)
	// CreateEndpoint creates an endpoint of the named network with this address, or with a free address if none is
	// given.
	CreateEndpoint(ctx context.Context, network, name, address string) (HNSEndpoint, error)
	// AttachEndpoint adds an adapter with the endpoint's address to the machine. An existing adapter is no error.
	// The adapter disappears at the next boot. Like every adapter, it registers in DNS unless the registry disables
	// the registration.
	AttachEndpoint(ctx context.Context, name string) error
	DeleteEndpoint(ctx context.Context, name string) error
}

// Processes is the process table.
type Processes interface {
	List(ctx context.Context) ([]Process, error)
	// Kill ends a process and waits for its end. A missing process is no error.
	Kill(ctx context.Context, pid int) error
	// Self returns the PID of the caller's own process.
	Self() int
}

// Probes checks the components of the node from the host itself.
type Probes interface {
	// HTTPGet sends a GET request to an address on the host (http://127.0.0.1:10248/healthz) and returns the status
	// code and the first KiB of the response. The argument client is a certificate with its key in PEM for a server
	// that requests a client certificate, or nil.
	HTTPGet(ctx context.Context, url string, client []byte) (status int, body string, err error)
	// ContainerRuntime queries a CRI endpoint (npipe://./pipe/containerd-containerd).
	ContainerRuntime(ctx context.Context, endpoint string) (RuntimeStatus, error)
}

// Sandboxes manages the pods of a container runtime at its CRI endpoint (npipe://./pipe/containerd-containerd).
type Sandboxes interface {
	// List returns all sandboxes, including terminated sandboxes.
	List(ctx context.Context, endpoint string) ([]Sandbox, error)
	// End stops and removes a sandbox with its containers, which unmounts all layers of the sandbox. A missing
	// sandbox is no error.
	End(ctx context.Context, endpoint, id string) error
}

// Layers manages the file systems of images and containers: directories mounted by the container platform of
// Windows, with files that belong to Windows.
type Layers interface {
	// Destroy unmounts a layer that no container uses and deletes its directory. A missing layer is no error.
	Destroy(ctx context.Context, folder string) error
}

// EventLog is the Windows event log. Events are written to the log Application, which administrators monitor.
type EventLog interface {
	// Read calls each for the events of a log ("Application", "System"), newest first, until each returns false.
	// Read returns ErrNotExist if the log does not exist. If the log is cleared during the read, the events since
	// then follow. Read fails if the log is cleared several times.
	Read(ctx context.Context, log string, each func(LoggedEvent) (more bool)) error
	// Report writes an event. The source of the event may be unknown: Event Viewer then shows the message below an
	// additional remark.
	Report(ctx context.Context, event Event) error
	// HasSource reports whether Windows has a source of that name.
	HasSource(ctx context.Context, source string) (bool, error)
	// AddSource registers a source, so that Event Viewer shows only the message of each of its events. A registered
	// source is no error.
	AddSource(ctx context.Context, source string) error
	// RemoveSource unregisters a source and keeps its events. An unknown source is no error.
	RemoveSource(ctx context.Context, source string) error
}

// Antivirus is Microsoft Defender Antivirus. Exclusions can be read and changed only while Defender is active
// (ErrNoAntivirus).
type Antivirus interface {
	// IsActive reports whether Defender scans on this machine; see IsDefenderActive.
	IsActive(ctx context.Context) (bool, error)
	// Exclusions returns the exclusions from scans, and ErrRefused if a policy hides the exclusions even from
	// administrators.
	Exclusions(ctx context.Context) ([]Exclusion, error)
	// AddExclusion adds a permanent exclusion. An existing exclusion is no error. ErrRefused means that Defender
	// rejects the addition.
	AddExclusion(ctx context.Context, exclusion Exclusion) error
	// RemoveExclusion removes an exclusion. A missing exclusion is no error. ErrRefused means that Defender keeps
	// the exclusion.
	RemoveExclusion(ctx context.Context, exclusion Exclusion) error
}

// Outbound connects from the machine to other hosts.
type Outbound interface {
	// LookupHost resolves a host name to IPv4 and IPv6 addresses like programs on the machine: first with the hosts
	// file, then with DNS. ErrNotExist means that the name does not exist.
	LookupHost(ctx context.Context, name string) (addresses []string, err error)
	// Connect opens a TCP connection to an address with a port (10.0.0.1:6443) and closes it without sending data.
	Connect(ctx context.Context, address string) error
}

// Roots is the machine's store of trusted root certification authorities, LocalMachine\Root. The store combines the
// machine's own certificates with the certificates from group policies, Active Directory and Windows.
type Roots interface {
	// Fingerprints returns the SHA-256 digests of the certificates in the store, in lower-case hex.
	Fingerprints(ctx context.Context) ([]string, error)
	// Add adds a DER certificate to the machine's own part of the store. An existing certificate is no error.
	Add(ctx context.Context, der []byte) error
	// Remove removes a certificate from the machine's own part of the store. A missing certificate is no error.
	// ErrRefused means that the certificate is still trusted because a group policy, Active Directory or Windows
	// itself also provides it.
	Remove(ctx context.Context, fingerprint string) error
}

// Routes manages the active IPv4 routes.
type Routes interface {
	// ViaDefault returns the destinations, in CIDR notation, of all routes through the adapter of the default route.
	ViaDefault(ctx context.Context) ([]string, error)
	// Add adds a route to the destination through the adapter and the gateway of the default route, until the next
	// boot. An existing route is no error. ErrNotExist means that there is no default route.
	Add(ctx context.Context, destination string) error
	// Delete deletes the routes to the destination through that adapter. A missing route is no error.
	Delete(ctx context.Context, destination string) error
}

// Logs manages the log files of programs that append to their log without rotation.
type Logs interface {
	// Rotate copies the log to another file and truncates the original while its writer continues. Data written
	// between the two steps may be lost. If the log cannot be truncated (ErrInUse: a program has mapped the file),
	// Rotate leaves no copy.
	Rotate(ctx context.Context, path, to string) error
}

// Metadata is the metadata service of the machine's cloud.
type Metadata interface {
	// HostName returns the platform's name for the machine: the private DNS name on AWS, the instance name on GCP.
	// ErrNotExist means that the platform has no such service.
	HostName(ctx context.Context, platform string) (string, error)
}

// Registry manages numbers (REG_DWORD) below HKEY_LOCAL_MACHINE, for Windows settings without an API.
type Registry interface {
	// Number returns a number, and ErrNotExist for a missing value.
	Number(ctx context.Context, at RegistryName) (uint32, error)
	// SetNumber sets a number and creates a missing key.
	SetNumber(ctx context.Context, at RegistryName, value uint32) error
	// Delete deletes a value. A missing value is no error.
	Delete(ctx context.Context, at RegistryName) error
}
