package nodespec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Inputs are the inputs of a NodeSpec.
type Inputs struct {
	Cluster  Cluster
	Instance Instance
	// Kubernetes is the minor version of Kubernetes of the node: "1.36".
	Kubernetes string
	// Payload are the components for the cluster's platform and the version of Kubernetes, without the agent.
	Payload []Component
	// Agent is the agent's executable.
	Agent           PayloadFile
	OperatorVersion string
	// PodSubnet is the subnet that the hybrid overlay assigned to the node; empty before the assignment.
	PodSubnet   string
	LogSettings LogSettings
	// PauseImage is the image that holds a pod's namespaces; empty for DefaultPauseImage.
	PauseImage string
	// Debug enables verbose logs of the services.
	Debug bool
}

// Instance is the target host of the spec.
type Instance struct {
	Name string
	// NodeName is the name that the kubelet registers. HostName is the desired computer name; empty to keep the
	// current name.
	NodeName, HostName string
	// NodeIP is the IPv4 address of the adapter with the default route.
	NodeIP string
	// Registration changes when the kubelet must register its Node again.
	Registration string
	// BYOH is true for hosts in the ConfigMap windows-instances.
	BYOH bool
}

// Component is a part of the payload.
type Component struct {
	Name    string
	Version string
	Files   []PayloadFile
}

// MissingProgramsError lists the programs of a node that the payload lacks.
type MissingProgramsError struct {
	Programs []string // file names, sorted
}

func (e *MissingProgramsError) Error() string {
	return "the payload lacks " + strings.Join(e.Programs, ", ") + ": a node requires all programs"
}

// Make returns the NodeSpec of a host as a pure function of the inputs. It fails when an input is missing or
// malformed, and with a MissingProgramsError when the payload lacks a program of the node.
func Make(in Inputs) (NodeSpec, error) {
	if err := in.validate(); err != nil {
		return NodeSpec{}, err
	}
	trusted, err := trustedCertificates(in.Cluster.TrustedCAs)
	if err != nil {
		return NodeSpec{}, fmt.Errorf("generate the NodeSpec of host %q: %w", in.Instance.Name, err)
	}
	files, err := nodeFiles(in)
	if err != nil {
		return NodeSpec{}, fmt.Errorf("generate the NodeSpec of host %q: %w", in.Instance.Name, err)
	}
	programs := newPrograms(in.Payload)
	services := nodeServices(in, programs)
	spec := NodeSpec{
		Schema: SchemaVersion, Instance: in.Instance.Name, Version: in.OperatorVersion,
		HostName: in.Instance.HostName, NodeName: in.Instance.NodeName,
		NodeIP:   in.Instance.NodeIP,
		Features: Features(), OptionalFeatures: OptionalFeatures(),
		Releases: programs.releases, Links: programs.programLinks(),
		Files:    files,
		Firewall: firewallRules(), Exclusions: antivirusExclusions(programs),
		TrustedCertificates: trusted, Routes: requiredRoutes(in),
		Identity: newIdentity(in, ServiceKubelet), Identities: additionalIdentities(in), Reporting: newReporting(in),
		Services: services, Logs: rotatedLogs(in, services),
		Network: Network{
			PodSubnet: in.PodSubnet, HNSNetwork: hnsNetwork,
			OwnedNetworks:     []string{baseHNSNetwork, hnsNetwork},
			SourceVIPEndpoint: sourceVIPEndpoint,
		},
		Checks: nodeChecks(in),
	}
	if missing := slices.Compact(slices.Sorted(slices.Values(programs.missing))); len(missing) > 0 {
		return NodeSpec{}, &MissingProgramsError{Programs: missing}
	}
	spec.Directories = slices.Concat(nodeDirectories(spec.Services), cloudNodeManagerDirectories(in),
		containerdDirectories(in))
	return spec, nil
}

// KubeletPort is the port of the kubelet's logs and metrics.
const KubeletPort = 10250

// ServedPorts returns the TCP ports of a node that the cluster connects to.
func ServedPorts() []int { return []int{KubeletPort, exporterPort} }

// Features returns the Windows features that every node needs.
func Features() []string { return []string{FeatureContainers} }

// OptionalFeatures returns the Windows features that a node needs if the host's version of Windows has them.
func OptionalFeatures() []string { return []string{featureHNS, featureSDN} }

// programs records the releases of the payload and the missing executables.
type programs struct {
	releases []Release
	missing  []string
}

func newPrograms(components []Component) *programs {
	p := &programs{}
	for _, component := range sortComponents(components) {
		p.releases = append(p.releases, Release{
			Component: component.Name, Version: component.Version,
			Directory: ReleaseDirectory(component.Name, filesDigest(component.Files)), Files: component.Files,
		})
	}
	return p
}

// filesDigest identifies the content of a component, so that an operator release without changes to a component
// keeps the component's directory.
func filesDigest(files []PayloadFile) string {
	lines := make([]string, len(files))
	for i, file := range files {
		lines[i] = file.SHA256 + " " + file.Name
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}

// executablePath returns the path of an executable on the host, or records the program as missing.
func (p *programs) executablePath(name string) string {
	for _, release := range p.releases {
		for _, file := range release.Files {
			if file.Name == name {
				return release.Path(file)
			}
		}
	}
	p.missing = append(p.missing, name)
	return ""
}

// linkDirectories are the directories of the documented executable names, for components with a separate directory
// below C:\k.
var linkDirectories = map[string]string{"cni": cniDirectory, "containerd": containerdDirectory}

// programLinks returns the links that keep the documented file names below C:\k valid.
func (p *programs) programLinks() []Link {
	var links []Link
	for _, release := range p.releases {
		folder := Root
		if special, ok := linkDirectories[release.Component]; ok {
			folder = special
		}
		for _, file := range release.Files {
			links = append(links, Link{Path: folder + `\` + file.Name, Target: release.Path(file)})
		}
	}
	return links
}

// nodeDirectories returns the directories of a node, parents before children.
func nodeDirectories(services []Service) []Directory {
	// Restricting access to C:\k does not revoke the rights of a subdirectory's owner, or rights granted to a user
	// by name. So access to each directory is restricted separately.
	list := []Directory{
		newAdminDirectory(Root), newAdminDirectory(cniDirectory), newAdminDirectory(cniConfigDirectory),
		newAdminDirectory(containerdDirectory), newAdminDirectory(registriesDirectory), newAdminDirectory(hybridOverlayDirectory),
		newAdminDirectory(`C:\k\etc`), newAdminDirectory(`C:\k\etc\kubernetes`), newAdminDirectory(manifestsDirectory),
		newAdminDirectory(ReleasesRoot),
		newAdminDirectory(hybridOverlayPKI), newAdminDirectory(tlsDirectory), newAdminDirectory(tlsCertsDirectory),
	}
	list = append(list, GuardedDirectories()...)
	list = append(list,
		Directory{pkiDirectory, host.AccessAdministrators},
		// containerd sets this access at each start.
		Directory{containerdRoot, host.AccessAdministrators}, Directory{containerdState, host.AccessAdministrators},
	)
	for _, service := range services {
		list = append(list, Directory{LogDirectory(service.Name), host.AccessReadable})
	}
	return list
}

// antivirusExclusions returns the processes of the container runtime, so that Microsoft Defender Antivirus does not
// scan each file that they unpack or open. Scans slow down the start of containers. Values are full paths in
// directories that only administrators may write to, because a file name alone would match any program of that name.
// Links are not sufficient: Windows identifies a process by its real path.
func antivirusExclusions(p *programs) []host.Exclusion {
	return []host.Exclusion{
		{Kind: host.ExcludeProcess, Value: p.executablePath("containerd.exe")},
		{Kind: host.ExcludeProcess, Value: p.executablePath("containerd-shim-runhcs-v1.exe")},
	}
}

// requiredRoutes returns the routes that the creation of the HNS network, and each boot, removes although programs on
// the node need them. On clouds with a dedicated route in the Windows images, this is the address of the metadata
// service.
func requiredRoutes(in Inputs) []string {
	switch in.Cluster.Platform {
	case platformAWS:
		return awsRoutes()
	case platformGCP:
		return []string{metadataRoute}
	}
	return nil
}

const metadataRoute = "169.254.169.254/32"

// awsRoutes returns the destinations that AWS's Windows images route: time (.123), activation of Windows (.250,
// .251), DNS (.253) and the metadata service.
func awsRoutes() []string {
	return []string{
		"169.254.169.123/32", "169.254.169.250/32", "169.254.169.251/32", "169.254.169.253/32", metadataRoute,
	}
}

// RuleSSH is the name of the firewall rule for the operator's SSH connections to a node.
const RuleSSH = "WindowsMachineConfigSSH"

// SSHPort is the port of the operator's SSH connections.
const SSHPort = 22

// firewallRules returns the inbound rules of a node.
func firewallRules() []host.FirewallRule {
	return []host.FirewallRule{
		// oc logs and exec connect to the kubelet on this port.
		{Name: "ContainerLogsPort", DisplayName: "ContainerLogsPort", Protocol: "TCP", LocalPort: KubeletPort,
			Enabled: true, Allow: true},
		{Name: "WindowsExporter", DisplayName: "WindowsExporter", Protocol: "TCP", LocalPort: exporterPort,
			Enabled: true, Allow: true},
		// Load balancers query kube-proxy on this port to check whether the node accepts connections.
		{Name: "KubeProxyHealth", DisplayName: "KubeProxyHealth", Protocol: "TCP", LocalPort: 10256,
			Enabled: true, Allow: true},
		// The operator's SSH port. HNS creates the pod network with an adapter that Windows classifies as public.
		// If Windows' own rule is limited to private networks, the host would then become unreachable.
		{Name: RuleSSH, DisplayName: RuleSSH, Protocol: "TCP", LocalPort: SSHPort, Enabled: true, Allow: true},
	}
}
