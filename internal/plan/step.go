package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Plan is the ordered list of steps, and the needs that must be met before the remaining steps can be planned.
type Plan struct {
	Steps []Step          `json:"steps"`
	Needs []nodespec.Need `json:"needs,omitempty"`
}

// IsDisruptive reports whether the plan disrupts pods on the node.
func (p Plan) IsDisruptive() bool {
	return slices.ContainsFunc(p.Steps, func(step Step) bool { return step.DisruptsPods || step.Reboots })
}

// Step is one change of the host. The plan, the condition, the event, the metric and the CLI use the same name.
type Step struct {
	Name   string `json:"name"`   // kind and target: "StartService kubelet"
	Reason string `json:"reason"` // why, in words for an administrator
	// DisruptsPods is true if the step disrupts pods on the node.
	DisruptsPods bool `json:"disturbsPods,omitempty"`
	// Reboots is true for the step that restarts the host, which is always the last step.
	Reboots bool `json:"reboots,omitempty"`
	// Operation is the operation that the agent executes, and not part of the JSON form.
	Operation Operation `json:"-"`
}

// Operation is one of the operation types of this package.
type Operation interface {
	// targetName returns the object of the operation, without secrets.
	targetName() string
}

// Name returns the step name of an operation: kind and target.
func Name(operation Operation) string {
	return strings.TrimSpace(strings.TrimPrefix(fmt.Sprintf("%T", operation), "plan.") + " " + operation.targetName())
}

// Operations. Each operation can be repeated after an interruption.
type (
	// EnableFeature enables a Windows feature (pending until the reboot).
	EnableFeature struct{ Feature string }
	// DisableFeature disables a feature that the operator enabled.
	DisableFeature struct{ Feature string }
	// SetHostName sets the computer name (pending until the reboot).
	SetHostName struct{ HostName string }
	// Reboot restarts the host.
	Reboot struct{ Reason string }
	// MakeDirectory creates a directory or corrects its access.
	MakeDirectory struct{ Directory nodespec.Directory }
	// InstallRelease installs the files of a component to its directory.
	InstallRelease struct{ Release nodespec.Release }
	// WriteFile writes a configuration file.
	WriteFile struct{ File nodespec.File }
	// MakeLink creates or redirects a symbolic link.
	MakeLink struct{ Link nodespec.Link }
	// SetEnvironment sets a machine-wide variable, or removes the variable if Unset is true.
	SetEnvironment struct {
		Name, Value string
		Unset       bool
	}
	// SetFirewallRule creates or corrects a rule.
	SetFirewallRule struct{ Rule host.FirewallRule }
	// DeleteFirewallRule deletes a rule.
	DeleteFirewallRule struct{ Rule string }
	// AddEventSource registers an event source in Windows.
	AddEventSource struct{ Source string }
	// RemoveEventSource deletes the registration of an event source.
	RemoveEventSource struct{ Source string }
	// AddExclusion adds an exclusion to Microsoft Defender Antivirus.
	AddExclusion struct{ Exclusion host.Exclusion }
	// RemoveExclusion removes an exclusion from Microsoft Defender Antivirus.
	RemoveExclusion struct{ Exclusion host.Exclusion }
	// TrustCertificate adds an authority to the machine's root store.
	TrustCertificate struct{ Certificate nodespec.TrustedCertificate }
	// DistrustCertificate removes an authority from the machine's root store.
	DistrustCertificate struct{ Fingerprint, Subject string }
	// AddRoute adds a route through the adapter of the default route.
	AddRoute struct{ Destination string }
	// DeleteRoute deletes a route.
	DeleteRoute struct{ Destination string }
	// RequestCertificate creates the private key of an identity and its certificate request.
	RequestCertificate struct{ Identity nodespec.Identity }
	// InstallCertificate installs the signed certificate for its service.
	InstallCertificate struct{ Identity nodespec.Identity }
	// ConfigureService creates or corrects a service.
	ConfigureService struct{ Service host.ServiceConfig }
	// SetStartType changes the start type of a foreign service.
	SetStartType struct {
		Service   string
		StartType host.StartType
	}
	// StartService starts a service and waits until it runs.
	StartService struct{ Service string }
	// StopService stops a service and its dependents and waits until their processes have ended.
	StopService struct{ Service string }
	// EndPods ends, through the container runtime, the pods that remain after the drain. Only the runtime can
	// unmount their files.
	EndPods struct{ Service, Endpoint string }
	// DeleteService deletes a service.
	DeleteService struct{ Service string }
	// SetRegistryNumber sets a number in the registry.
	SetRegistryNumber struct {
		At    host.RegistryName
		Value uint32
	}
	// DeleteRegistryValue deletes a value in the registry.
	DeleteRegistryValue struct{ At host.RegistryName }
	// AwaitNetwork waits until hybrid-overlay-node has created the HNS network. Lacks is the reason why Windows
	// cannot create a network; empty for none. NodeIP is the address of the adapter that the network should use.
	AwaitNetwork struct{ Network, Subnet, Lacks, NodeIP string }
	// CreateEndpoint creates kube-proxy's source endpoint. Without an address, Windows chooses one.
	CreateEndpoint struct{ Network, Name, Address string }
	// AttachEndpoint adds an adapter with the endpoint's address to the host, until the next boot, and disables DNS
	// registration of the adapter.
	AttachEndpoint struct{ Name string }
	// DisableDNSRegistration disables DNS registration of an endpoint's adapter.
	DisableDNSRegistration struct{ Endpoint, Adapter string }
	// DeleteNetwork deletes an HNS network with its endpoints.
	DeleteNetwork struct{ Network string }
	// KillProcess kills a process that runs from the operator's directories, such as a container shim.
	KillProcess struct{ Process host.Process }
	// RemovePath removes a file, link or directory. With Keep, only entries of a directory that are not in Keep are
	// removed.
	RemovePath struct {
		Path string
		Keep []string
	}
	// RestoreService restores the original configuration of a service.
	RestoreService struct{ Service host.Service }
)

func (o EnableFeature) targetName() string      { return o.Feature }
func (o DisableFeature) targetName() string     { return o.Feature }
func (o SetHostName) targetName() string        { return o.HostName }
func (Reboot) targetName() string               { return "" }
func (o MakeDirectory) targetName() string      { return o.Directory.Path }
func (o InstallRelease) targetName() string     { return o.Release.Component }
func (o WriteFile) targetName() string          { return o.File.Path }
func (o MakeLink) targetName() string           { return o.Link.Path }
func (o SetEnvironment) targetName() string     { return o.Name }
func (o SetFirewallRule) targetName() string    { return o.Rule.Name }
func (o DeleteFirewallRule) targetName() string { return o.Rule }
func (o AddEventSource) targetName() string     { return o.Source }
func (o RemoveEventSource) targetName() string  { return o.Source }
func (o AddExclusion) targetName() string       { return o.Exclusion.Value }
func (o RemoveExclusion) targetName() string    { return o.Exclusion.Value }
func (o TrustCertificate) targetName() string {
	return describeAuthority(o.Certificate.Fingerprint, o.Certificate.Subject)
}
func (o DistrustCertificate) targetName() string    { return describeAuthority(o.Fingerprint, o.Subject) }
func (o AddRoute) targetName() string               { return o.Destination }
func (o DeleteRoute) targetName() string            { return o.Destination }
func (o RequestCertificate) targetName() string     { return o.Identity.CommonName }
func (o InstallCertificate) targetName() string     { return o.Identity.CommonName }
func (o ConfigureService) targetName() string       { return o.Service.Name }
func (o SetStartType) targetName() string           { return o.Service }
func (o StartService) targetName() string           { return o.Service }
func (o StopService) targetName() string            { return o.Service }
func (o EndPods) targetName() string                { return o.Service }
func (o DeleteService) targetName() string          { return o.Service }
func (o SetRegistryNumber) targetName() string      { return o.At.Name }
func (o DeleteRegistryValue) targetName() string    { return o.At.Name }
func (o AwaitNetwork) targetName() string           { return o.Network }
func (o CreateEndpoint) targetName() string         { return o.Name }
func (o AttachEndpoint) targetName() string         { return o.Name }
func (o DisableDNSRegistration) targetName() string { return o.Endpoint }
func (o DeleteNetwork) targetName() string          { return o.Network }
func (o KillProcess) targetName() string            { return o.Process.Name }
func (o RemovePath) targetName() string             { return o.Path }
func (o RestoreService) targetName() string         { return o.Service.Name }
