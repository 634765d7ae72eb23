package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// windowsRelease is a Windows Server version that can be a node.
type windowsRelease struct {
	version, name string
	// leastRevision is the oldest update that works.
	leastRevision int
	// customVXLANPort tells whether HNS of this version can use another VXLAN port than 4789.
	customVXLANPort bool
}

// windowsReleases are the supported versions. Source: the support tables of the guides; 20348.681 is the build with KB5012637.
var windowsReleases = []windowsRelease{
	{version: "10.0.17763", name: "Windows Server 2019", leastRevision: 0},
	{version: "10.0.20348", name: "Windows Server 2022", leastRevision: 681, customVXLANPort: true},
	{version: "10.0.26100", name: "Windows Server 2025", leastRevision: 0, customVXLANPort: true},
}

type supportSubject struct {
	system  host.SystemInfo
	cluster nodespec.Cluster
}

func (s supportSubject) build() string {
	return fmt.Sprintf("%s.%d", s.system.Version, s.system.Revision)
}

func (s supportSubject) release() (windowsRelease, bool) {
	i := slices.IndexFunc(windowsReleases, func(r windowsRelease) bool { return r.version == s.system.Version })
	if i < 0 {
		return windowsRelease{}, false
	}
	return windowsReleases[i], true
}

// SupportHost decides whether a host can be a node of the cluster.
func SupportHost(system host.SystemInfo, cluster nodespec.Cluster) Decision {
	subject := supportSubject{system: system, cluster: cluster}
	allowed := fmt.Sprintf("%s, build %s, is supported on platform %s.", system.Product, subject.build(), cluster.Platform)
	return decide(subject, allowed, []check[supportSubject]{
		{"NetworkType", v1alpha1.ReasonNetworkUnsupported, ovnKubernetes},
		{"HybridOverlay", v1alpha1.ReasonNetworkUnsupported, hybridOverlay},
		{"Architecture", v1alpha1.ReasonArchitectureUnsupported, architecture},
		{"Edition", v1alpha1.ReasonWindowsUnsupported, serverEdition},
		{"WindowsVersion", v1alpha1.ReasonWindowsUnsupported, windowsVersion},
		{"WindowsUpdate", v1alpha1.ReasonWindowsUnsupported, windowsUpdate},
		{"VXLANPort", v1alpha1.ReasonVXLANPortUnsupported, vxlanPort},
	})
}

func ovnKubernetes(s supportSubject) string {
	if s.cluster.Network.Type == "OVNKubernetes" {
		return ""
	}
	return fmt.Sprintf("The cluster's network is %q; Windows nodes need OVN-Kubernetes with hybrid networking, which is chosen when the cluster is installed.", s.cluster.Network.Type)
}

func hybridOverlay(s supportSubject) string {
	if s.cluster.Network.HybridOverlay {
		return ""
	}
	return "OVN-Kubernetes has no hybrid networking: hybridOverlayConfig.hybridClusterNetwork of Network.operator.openshift.io/cluster is empty. It is chosen when the cluster is installed."
}

func architecture(s supportSubject) string {
	if s.system.Architecture == "amd64" {
		return ""
	}
	return fmt.Sprintf("The host's architecture is %q; only amd64 is supported.", s.system.Architecture)
}

// serverEdition refuses Windows for desktops, some of whose builds have the numbers of server builds.
func serverEdition(s supportSubject) string {
	if strings.HasPrefix(s.system.Edition, "Server") {
		return ""
	}
	return fmt.Sprintf("%s, build %s, edition %q, is not supported on platform %s: only Windows Server is.", s.system.Product, s.build(), s.system.Edition, s.cluster.Platform)
}

func windowsVersion(s supportSubject) string {
	if _, ok := s.release(); ok {
		return ""
	}
	return fmt.Sprintf("%s, build %s, is not supported on platform %s: only Windows Server 2019 (10.0.17763), 2022 (10.0.20348.681 or later) and 2025 (10.0.26100) are.",
		s.system.Product, s.build(), s.cluster.Platform)
}

func windowsUpdate(s supportSubject) string {
	release, _ := s.release()
	if s.system.Revision >= release.leastRevision {
		return ""
	}
	return fmt.Sprintf("%s, build %s, lacks an update: build %s.%d or later is needed.", s.system.Product, s.build(), release.version, release.leastRevision)
}

func vxlanPort(s supportSubject) string {
	release, _ := s.release()
	if s.cluster.Network.VXLANPort == nil || release.customVXLANPort {
		return ""
	}
	return fmt.Sprintf("The cluster uses the custom VXLAN port %d, which %s cannot use. Windows Server 2022 and later can.", *s.cluster.Network.VXLANPort, release.name)
}
