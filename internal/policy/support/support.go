// Package support defines the supported platforms, releases of Windows, versions and networks of clusters, and names
// of Machines. Its decisions depend only on the facts of a cluster or a host, never on other instances.
package support

import (
	"fmt"
)

// Platform holds the requirements of a platform for a cluster and its Windows nodes.
type Platform struct {
	// Name is the platform type in the Infrastructure object; Title is the common name.
	Name, Title string
	// Windows are the names of the Windows releases that can be nodes on the platform.
	Windows []string
	// Machines reports whether Windows nodes can come from MachineSets. User-provided hosts can be nodes on every
	// platform.
	Machines bool
	// MaxMachineNameLength is the maximum length of the name of a Windows Machine in characters; 0 means no limit.
	MaxMachineNameLength int
	// CustomVXLANPort reports whether the hybrid overlay must have a custom VXLAN port.
	CustomVXLANPort bool
}

// Platforms returns the platforms that Windows nodes are supported on. Sources: the tables of the guides for
// OpenShift 4.6, 4.8 and 4.12; the newest table applies. Windows Server 2025 and Nutanix are in later guides only:
// 2025 on every platform that supports 2022; Nutanix with these two, without a limit of names: the MachineSets there
// are named <infrastructure>-windows-worker-<zone>.
func Platforms() []Platform {
	return []Platform{
		{Name: "AWS", Title: "Amazon Web Services", Windows: []string{server2019, server2022, server2025}, Machines: true},
		{Name: "Azure", Title: "Microsoft Azure", Windows: []string{server2019, server2022, server2025}, Machines: true,
			MaxMachineNameLength: 15},
		{Name: "GCP", Title: "Google Cloud", Windows: []string{server2022, server2025}, Machines: true},
		{Name: "VSphere", Title: "VMware vSphere", Windows: []string{server2022, server2025}, Machines: true,
			MaxMachineNameLength: 15, CustomVXLANPort: true},
		{Name: "Nutanix", Title: "Nutanix", Windows: []string{server2022, server2025}, Machines: true},
		{Name: "None", Title: "no platform (`platform: none`)", Windows: []string{server2019, server2022, server2025}},
		{Name: "BareMetal", Title: "bare metal", Windows: []string{server2019, server2022, server2025}},
	}
}

const (
	server2019 = "Windows Server 2019"
	server2022 = "Windows Server 2022"
	server2025 = "Windows Server 2025"
)

// WindowsRelease is a release of Windows Server that can be a node.
type WindowsRelease struct {
	// Name is the product name, and Version the version that Windows reports: "10.0.20348".
	Name, Version string
	// MinRevision is the oldest update accepted on a new host: the number behind the version in a build. There is
	// no newest one.
	MinRevision int
	// MinUpdate is the Microsoft article about that update.
	MinUpdate string
	// Advisories are ranges of updates with known faults.
	Advisories []Advisory
	// CustomVXLANPort reports whether the host network supports a VXLAN port other than 4789.
	CustomVXLANPort bool
}

// Advisory is a fault in some updates of a Windows release that does not prevent a host from being a node.
type Advisory struct {
	// From is the first revision with the fault, and Before the first revision with the fix.
	From, Before int
	// Fault describes the fault, and FixedBy is the Microsoft article about the update Before.
	Fault, FixedBy string
}

// WindowsReleases returns the releases that can be nodes on some platform, the oldest first. Sources: KB5012637 for
// Windows Server 2022. Windows Server 2019 has direct server return since an update of August 2020, and loses packets
// with it until KB4586793 of November 2020 (github.com/microsoft/Windows-Containers, issue 19); the guides for
// OpenShift 4.6 prescribed older builds, so these are accepted with advice. Windows Server 2025 has working overlay
// networks since October 2025 (github.com/rancher/rancher, issue 50915). Pods of Windows Server 2022 lost their
// networks from July to October 2024 (github.com/microsoft/Windows-Containers, issue 516).
func WindowsReleases() []WindowsRelease {
	return []WindowsRelease{
		{Name: server2019, Version: "10.0.17763", Advisories: []Advisory{{
			Before: 1577, Fault: "connections to Services can fail, because direct server return is missing or loses packets", FixedBy: "KB4586793",
		}}},
		{Name: server2022, Version: "10.0.20348", MinRevision: 681, MinUpdate: "KB5012637", CustomVXLANPort: true,
			Advisories: []Advisory{{
				From: 2582, Before: 2762, Fault: "pods lose their network after a while", FixedBy: "KB5044281",
			}}},
		{Name: server2025, Version: "10.0.26100", MinRevision: 6899, MinUpdate: "KB5066835", CustomVXLANPort: true},
	}
}

// ReleaseLine describes the clusters that a major version of the operator supports.
type ReleaseLine struct {
	// Operator is the operator's major version.
	Operator int
	// Minors are the served minor versions of OpenShift, the oldest first.
	Minors []Minor
}

// Minor is a minor version of OpenShift that a release line serves.
type Minor struct {
	// OpenShift is the minor version: "5.0". Kubernetes is the minor version of Kubernetes in that OpenShift version,
	// and of the kubelets that the operator installs there: "1.36".
	OpenShift, Kubernetes string
	// MinPatch is the first patch version of OpenShift that meets all requirements of the operator.
	MinPatch uint
	// Preview reports whether the minor version was not generally available when the line was released.
	Preview bool
}

// MinVersion returns the oldest served version of the minor version: "5.0.3".
func (m Minor) MinVersion() string { return fmt.Sprintf("%s.%d", m.OpenShift, m.MinPatch) }

// ReleaseLines returns the lines of this operator, the oldest first. Releases of the operator belong to the last
// line. The same applies to builds that are no releases, regardless of their version: the supported clusters depend
// on the kubelets of the payload, not on the name of the build. Several OpenShift versions can have the same version
// of Kubernetes.
func ReleaseLines() []ReleaseLine {
	return []ReleaseLine{
		{Operator: 12, Minors: []Minor{
			{OpenShift: "4.20", Kubernetes: "1.33"},
			{OpenShift: "4.21", Kubernetes: "1.34"},
			{OpenShift: "4.22", Kubernetes: "1.35"},
			{OpenShift: "4.23", Kubernetes: "1.36"},
			{OpenShift: "5.0", Kubernetes: "1.36"},
			{OpenShift: "5.1", Kubernetes: "1.37", Preview: true},
		}},
	}
}

// MinClusterVersion is the minimum version of OpenShift that any release of the operator supports for Windows nodes.
const MinClusterVersion = "4.6.8"

// CurrentLine returns the line of this operator.
func CurrentLine() ReleaseLine {
	lines := ReleaseLines()
	return lines[len(lines)-1]
}

func findPlatform(name string) (Platform, bool) {
	for _, platform := range Platforms() {
		if platform.Name == name {
			return platform, true
		}
	}
	return Platform{}, false
}

// String returns the release's name with its supported builds.
func (r WindowsRelease) String() string {
	if r.MinRevision == 0 {
		return fmt.Sprintf("%s (%s)", r.Name, r.Version)
	}
	return fmt.Sprintf("%s (%s.%d or later)", r.Name, r.Version, r.MinRevision)
}
