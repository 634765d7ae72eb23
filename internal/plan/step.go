package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Plan is the ordered list of steps, and the needs that must be met before the rest can be planned.
type Plan struct {
	Steps []Step          `json:"steps"`
	Needs []nodespec.Need `json:"needs,omitempty"`
}

// Disturbs reports whether pods on the node feel the plan.
func (p Plan) Disturbs() bool {
	return slices.ContainsFunc(p.Steps, func(step Step) bool { return step.DisturbsPods || step.Reboots })
}

// Step is one change of the host. Its name is the same in the plan, the condition, the event, the metric and the CLI.
type Step struct {
	Name   string `json:"name"`   // kind and target: "StartService kubelet"
	Reason string `json:"reason"` // why, in words for an administrator
	// DisturbsPods is true when pods on the node feel the step.
	DisturbsPods bool `json:"disturbsPods,omitempty"`
	// Reboots is true for the step that restarts the host; it is always the last.
	Reboots bool `json:"reboots,omitempty"`
	// Operation is what the agent does. It is not part of the JSON form.
	Operation Operation `json:"-"`
}

// Operation is one of the operation types of this package.
type Operation interface {
	// target is what the operation is done to; it holds no secret.
	target() string
}

// Name returns the name of the step that does an operation: its kind and its target.
func Name(operation Operation) string {
	return strings.TrimSpace(strings.TrimPrefix(fmt.Sprintf("%T", operation), "plan.") + " " + operation.target())
}

// The operations. Each is safe to do again after it was cut off in the middle.
type (
	// EnableFeature turns a Windows feature on (pending until the reboot).
	EnableFeature struct{ Feature string }
	// DisableFeature turns a feature off that we had turned on.
	DisableFeature struct{ Feature string }
	// SetHostName sets the computer name (pending until the reboot).
	SetHostName struct{ HostName string }
	// Reboot restarts the host.
	Reboot struct{ Reason string }
	// MakeDirectory makes a folder or corrects who may use it.
	MakeDirectory struct{ Directory nodespec.Directory }
	// InstallRelease brings the files of a component to its folder.
	InstallRelease struct{ Release nodespec.Release }
	// WriteFile writes a configuration file.
	WriteFile struct{ File nodespec.File }
	// MakeLink makes or redirects a symbolic link.
	MakeLink struct{ Link nodespec.Link }
	// SetEnvironment sets a machine-wide variable; with Unset it takes it away.
	SetEnvironment struct {
		Name, Value string
		Unset       bool
	}
	// SetFirewallRule makes or corrects a rule.
	SetFirewallRule struct{ Rule host.FirewallRule }
	// DeleteFirewallRule takes a rule away.
	DeleteFirewallRule struct{ Rule string }
	// AddEventSource makes an event source known to Windows.
	AddEventSource struct{ Source string }
	// RemoveEventSource makes Windows forget an event source.
	RemoveEventSource struct{ Source string }
	// AddExclusion has Microsoft Defender Antivirus leave something out of its scans.
	AddExclusion struct{ Exclusion host.Exclusion }
	// RemoveExclusion has it scanned again.
	RemoveExclusion struct{ Exclusion host.Exclusion }
	// TrustCertificate has the machine trust an authority.
	TrustCertificate struct{ Certificate nodespec.TrustedCertificate }
	// DistrustCertificate takes an authority out of the machine's store of roots.
	DistrustCertificate struct{ Fingerprint, Subject string }
	// AddRoute makes a route through the adapter of the default route.
	AddRoute struct{ Destination string }
	// DeleteRoute takes it away.
	DeleteRoute struct{ Destination string }
	// RequestCertificate makes the private key of an identity and its certificate request.
	RequestCertificate struct{ Identity nodespec.Identity }
	// InstallCertificate puts the signed certificate where its service finds it.
	InstallCertificate struct{ Identity nodespec.Identity }
	// ConfigureService creates or corrects a service.
	ConfigureService struct{ Service host.ServiceConfig }
	// SetStartType changes when Windows starts a service that is not ours.
	SetStartType struct {
		Service   string
		StartType host.StartType
	}
	// StartService starts a service and waits until it runs.
	StartService struct{ Service string }
	// StopService stops a service and its dependents and waits until their processes are gone.
	StopService struct{ Service string }
	// EndPods has the container runtime end the pods that the drain has left. Only the runtime can unmount their files.
	EndPods struct{ Service, Endpoint string }
	// DeleteService removes a service.
	DeleteService struct{ Service string }
	// SetRegistryNumber sets a number in the registry.
	SetRegistryNumber struct {
		At    host.RegistryName
		Value uint32
	}
	// DeleteRegistryValue takes a value out of the registry.
	DeleteRegistryValue struct{ At host.RegistryName }
	// AwaitNetwork waits until hybrid-overlay-node has made the HNS network. Lacks says what keeps Windows from having
	// one; empty for nothing. NodeIP is the address of the adapter that the network should use.
	AwaitNetwork struct{ Network, Subnet, Lacks, NodeIP string }
	// CreateEndpoint makes kube-proxy's source endpoint. Without an address Windows chooses one.
	CreateEndpoint struct{ Network, Name, Address string }
	// AttachEndpoint gives the host an adapter with the endpoint's address, until the next boot, and keeps the adapter out of DNS.
	AttachEndpoint struct{ Name string }
	// DisableDNSRegistration keeps the adapter of an endpoint out of DNS.
	DisableDNSRegistration struct{ Endpoint, Adapter string }
	// DeleteNetwork removes an HNS network with its endpoints.
	DeleteNetwork struct{ Network string }
	// KillProcess ends a process that runs from our folders, such as a container shim.
	KillProcess struct{ Process host.Process }
	// RemovePath removes a file, link or folder. With Keep, a folder loses only what is not in Keep.
	RemovePath struct {
		Path string
		Keep []string
	}
	// RestoreService gives a service back the configuration that it had before us.
	RestoreService struct{ Service host.Service }
)

func (o EnableFeature) target() string      { return o.Feature }
func (o DisableFeature) target() string     { return o.Feature }
func (o SetHostName) target() string        { return o.HostName }
func (Reboot) target() string               { return "" }
func (o MakeDirectory) target() string      { return o.Directory.Path }
func (o InstallRelease) target() string     { return o.Release.Component }
func (o WriteFile) target() string          { return o.File.Path }
func (o MakeLink) target() string           { return o.Link.Path }
func (o SetEnvironment) target() string     { return o.Name }
func (o SetFirewallRule) target() string    { return o.Rule.Name }
func (o DeleteFirewallRule) target() string { return o.Rule }
func (o AddEventSource) target() string     { return o.Source }
func (o RemoveEventSource) target() string  { return o.Source }
func (o AddExclusion) target() string       { return o.Exclusion.Value }
func (o RemoveExclusion) target() string    { return o.Exclusion.Value }
func (o TrustCertificate) target() string {
	return authority(o.Certificate.Fingerprint, o.Certificate.Subject)
}
func (o DistrustCertificate) target() string    { return authority(o.Fingerprint, o.Subject) }
func (o AddRoute) target() string               { return o.Destination }
func (o DeleteRoute) target() string            { return o.Destination }
func (o RequestCertificate) target() string     { return o.Identity.CommonName }
func (o InstallCertificate) target() string     { return o.Identity.CommonName }
func (o ConfigureService) target() string       { return o.Service.Name }
func (o SetStartType) target() string           { return o.Service }
func (o StartService) target() string           { return o.Service }
func (o StopService) target() string            { return o.Service }
func (o EndPods) target() string                { return o.Service }
func (o DeleteService) target() string          { return o.Service }
func (o SetRegistryNumber) target() string      { return o.At.Name }
func (o DeleteRegistryValue) target() string    { return o.At.Name }
func (o AwaitNetwork) target() string           { return o.Network }
func (o CreateEndpoint) target() string         { return o.Name }
func (o AttachEndpoint) target() string         { return o.Name }
func (o DisableDNSRegistration) target() string { return o.Endpoint }
func (o DeleteNetwork) target() string          { return o.Network }
func (o KillProcess) target() string            { return o.Process.Name }
func (o RemovePath) target() string             { return o.Path }
func (o RestoreService) target() string         { return o.Service.Name }
