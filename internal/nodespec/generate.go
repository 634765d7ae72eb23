package nodespec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Inputs is everything that a NodeSpec is made from.
type Inputs struct {
	Cluster  Cluster
	Instance Instance
	// Payload are the components for the cluster's platform, without the agent.
	Payload []Component
	// Agent is the agent's executable.
	Agent           PayloadFile
	OperatorVersion string
	// PodSubnet is what the hybrid overlay assigned to the node; empty until it has.
	PodSubnet   string
	LogSettings LogSettings
	// PauseImage is the image that holds a pod's namespaces; empty for the usual one.
	PauseImage string
	// Debug makes the services log more.
	Debug bool
}

// Instance is the host that the spec is for.
type Instance struct {
	Name string
	// NodeName is the name that the kubelet registers; HostName is the computer name to be set, empty to leave it.
	NodeName, HostName string
	// NodeIP is the IPv4 address of the adapter with the default route.
	NodeIP string
	// Registration changes when the kubelet must register its Node again.
	Registration string
	// BYOH is true for hosts from the ConfigMap windows-instances.
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
	return "the payload lacks " + strings.Join(e.Programs, ", ") + ": no host can become a node without it"
}

// Make returns the NodeSpec of a host. It is a pure function of its inputs. It fails when an input is absent or
// malformed, and with a MissingProgramsError when the payload lacks a program that the node runs.
func Make(in Inputs) (NodeSpec, error) {
	if err := in.validate(); err != nil {
		return NodeSpec{}, err
	}
	trusted, err := trustedCertificates(in.Cluster.TrustedCAs)
	if err != nil {
		return NodeSpec{}, fmt.Errorf("make the NodeSpec of host %q: %w", in.Instance.Name, err)
	}
	files, err := files(in)
	if err != nil {
		return NodeSpec{}, fmt.Errorf("make the NodeSpec of host %q: %w", in.Instance.Name, err)
	}
	programs := newPrograms(in.Payload)
	services := services(in, programs)
	spec := NodeSpec{
		Schema: SchemaVersion, Instance: in.Instance.Name, Version: in.OperatorVersion,
		HostName: in.Instance.HostName, NodeName: in.Instance.NodeName,
		NodeIP:   in.Instance.NodeIP,
		Features: Features(), OptionalFeatures: OptionalFeatures(),
		Releases: programs.releases, Links: programs.links(),
		Files:    files,
		Firewall: firewall(), Exclusions: exclusions(programs),
		TrustedCertificates: trusted, Routes: routes(in),
		Identity: identity(in, ServiceKubelet), Identities: identities(in), Reporting: reporting(in),
		Services: services, Logs: logs(in, services),
		Network: Network{
			PodSubnet: in.PodSubnet, HNSNetwork: hnsNetwork,
			OwnedNetworks:     []string{baseHNSNetwork, hnsNetwork},
			SourceVIPEndpoint: sourceVIPEndpoint,
		},
		Checks: checks(in),
	}
	if missing := slices.Compact(slices.Sorted(slices.Values(programs.missing))); len(missing) > 0 {
		return NodeSpec{}, &MissingProgramsError{Programs: missing}
	}
	spec.Directories = slices.Concat(directories(spec.Services), cloudNodeManagerDirectories(in),
		containerdDirectories(in))
	return spec, nil
}

// KubeletPort is where the kubelet serves logs and metrics.
const KubeletPort = 10250

// ServedPorts are the TCP ports of a node that the cluster connects to.
func ServedPorts() []int { return []int{KubeletPort, exporterPort} }

// Features are the Windows features that every node needs.
func Features() []string { return []string{FeatureContainers} }

// OptionalFeatures are those that a node needs where its Windows knows them.
func OptionalFeatures() []string { return []string{featureHNS, featureSDN} }

// programs finds executables in the releases of the payload.
type programs struct {
	releases []Release
	missing  []string
}

func newPrograms(components []Component) *programs {
	p := &programs{}
	for _, component := range byName(components) {
		p.releases = append(p.releases, Release{
			Component: component.Name, Version: component.Version,
			Directory: ReleaseDirectory(component.Name, filesDigest(component.Files)), Files: component.Files,
		})
	}
	return p
}

// filesDigest identifies the content of a component, so that a release that changes nothing in it keeps its folder.
func filesDigest(files []PayloadFile) string {
	lines := make([]string, len(files))
	for i, file := range files {
		lines[i] = file.SHA256 + " " + file.Name
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}

// path is where an executable lies on the host. A missing one is noted.
func (p *programs) path(name string) string {
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

// linkFolders are where the documented names of executables lie, for components that have a folder of their own below
// C:\k.
var linkFolders = map[string]string{"cni": cniDirectory, "containerd": containerdDirectory}

// links keep the documented file names below C:\k valid.
func (p *programs) links() []Link {
	var links []Link
	for _, release := range p.releases {
		folder := Root
		if special, ok := linkFolders[release.Component]; ok {
			folder = special
		}
		for _, file := range release.Files {
			links = append(links, Link{Path: folder + `\` + file.Name, Target: release.Path(file)})
		}
	}
	return links
}

// directories returns the folders of a node, parents before children.
func directories(services []Service) []Directory {
	// Closing C:\k does not take rights away from the owner of a folder in it, or from a user with rights by name. So each
	// folder is closed separately.
	list := []Directory{
		administrators(Root), administrators(cniDirectory), administrators(cniConfigDirectory),
		administrators(containerdDirectory), administrators(registriesDirectory), administrators(hybridOverlayDirectory),
		administrators(`C:\k\etc`), administrators(`C:\k\etc\kubernetes`), administrators(manifestsDirectory),
		administrators(ReleasesRoot),
		administrators(hybridOverlayPKI), administrators(tlsDirectory), administrators(tlsCertsDirectory),
	}
	list = append(list, GuardedDirectories()...)
	list = append(list,
		Directory{pkiDirectory, host.AccessAdministrators},
		// containerd itself gives its folders this access, at each start.
		Directory{containerdRoot, host.AccessAdministrators}, Directory{containerdState, host.AccessAdministrators},
	)
	for _, service := range services {
		list = append(list, Directory{LogDirectory(service.Name), host.AccessReadable})
	}
	return list
}

// exclusions keep Microsoft Defender Antivirus from scanning every file that the container runtime unpacks or opens,
// which slows the start of containers. They name the programs where they lie, in a folder that only administrators may
// write to, because a name alone would hold for every program that takes it. Links do not count: Windows knows a
// process by its real path.
func exclusions(p *programs) []host.Exclusion {
	return []host.Exclusion{
		{Kind: host.ExcludeProcess, Value: p.path("containerd.exe")},
		{Kind: host.ExcludeProcess, Value: p.path("containerd-shim-runhcs-v1.exe")},
	}
}

// routes are what the HNS network takes away when it is made, and again at each boot, and what programs on the node
// need: the address of the metadata service on the clouds whose Windows images have a route of its own for it.
func routes(in Inputs) []string {
	switch in.Cluster.Platform {
	case platformAWS:
		return awsRoutes()
	case platformGCP:
		return []string{metadataRoute}
	}
	return nil
}

const metadataRoute = "169.254.169.254/32"

// awsRoutes lead to the metadata service, and to what AWS has its images of Windows reach in the same way: the time
// (.123), the activation of Windows (.250, .251) and DNS (.253).
func awsRoutes() []string {
	return []string{
		"169.254.169.123/32", "169.254.169.250/32", "169.254.169.251/32", "169.254.169.253/32", metadataRoute,
	}
}

// RuleSSH is the name of the firewall rule by which the operator logs in to a node.
const RuleSSH = "WindowsMachineConfigSSH"

// SSHPort is the port at which the operator logs in.
const SSHPort = 22

// firewall returns the ports that others reach a node on.
func firewall() []host.FirewallRule {
	return []host.FirewallRule{
		// oc logs and exec reach the kubelet here.
		{Name: "ContainerLogsPort", DisplayName: "ContainerLogsPort", Protocol: "TCP", LocalPort: KubeletPort,
			Enabled: true, Allow: true},
		{Name: "WindowsExporter", DisplayName: "WindowsExporter", Protocol: "TCP", LocalPort: exporterPort,
			Enabled: true, Allow: true},
		// Load balancers ask kube-proxy here whether the node takes connections.
		{Name: "KubeProxyHealth", DisplayName: "KubeProxyHealth", Protocol: "TCP", LocalPort: 10256,
			Enabled: true, Allow: true},
		// The operator logs in here. Where Windows' own rule is for private networks only, the host would be cut off when
		// HNS makes the pods' network: Windows takes the adapter of that for a public one.
		{Name: RuleSSH, DisplayName: RuleSSH, Protocol: "TCP", LocalPort: SSHPort, Enabled: true, Allow: true},
	}
}
