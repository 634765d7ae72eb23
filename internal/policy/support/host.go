package support

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// HostRemedy is the remedy for a host that is not supported.
const HostRemedy = "Use a supported Windows version and network, or remove the host from its source."

type hostSubject struct {
	system  host.SystemInfo
	cluster nodespec.Cluster
}

func (s hostSubject) windowsBuild() string {
	return fmt.Sprintf("%s.%d", s.system.Version, s.system.Revision)
}

func (s hostSubject) findRelease() (WindowsRelease, bool) {
	for _, release := range WindowsReleases() {
		if release.Version == s.system.Version {
			return release, true
		}
	}
	return WindowsRelease{}, false
}

// SupportHost decides whether a host can be a node of the cluster, with an operator of this line. A host is not
// supported if the cluster is not; the message is then the message of SupportCluster.
func (line ReleaseLine) SupportHost(system host.SystemInfo, cluster nodespec.Cluster) policy.Decision {
	if decision := line.SupportCluster(cluster); !decision.Allowed {
		return decision
	}
	subject := hostSubject{system: system, cluster: cluster}
	allowed := fmt.Sprintf("%s, build %s, is supported on platform %s.", system.Product, subject.windowsBuild(), cluster.Platform)
	return policy.Decide(subject, allowed, []policy.Check[hostSubject]{
		{Name: "ArchitectureUnsupported", Reason: v1alpha1.ReasonArchitectureUnsupported, Violation: architectureUnsupported},
		{Name: "EditionUnsupported", Reason: v1alpha1.ReasonWindowsVersionUnsupported, Violation: editionUnsupported},
		{Name: "WindowsUnsupported", Reason: v1alpha1.ReasonWindowsVersionUnsupported, Violation: windowsUnsupported},
		{Name: "WindowsUpdateMissing", Reason: v1alpha1.ReasonWindowsVersionUnsupported, Violation: windowsUpdateMissing},
		{Name: "VXLANPortUnsupported", Reason: v1alpha1.ReasonVXLANPortUnsupported, Violation: vxlanPortUnsupported},
	})
}

func architectureUnsupported(s hostSubject) string {
	if s.system.Architecture == "amd64" {
		return ""
	}
	return fmt.Sprintf("The host's architecture is %q; only amd64 is supported.", s.system.Architecture)
}

// editionUnsupported refuses Windows for desktops, because some desktop builds have the numbers of server builds.
func editionUnsupported(s hostSubject) string {
	if strings.HasPrefix(s.system.Edition, "Server") {
		return ""
	}
	return fmt.Sprintf("%s, build %s, edition %q, is not supported on platform %s: only Windows Server is.",
		s.system.Product, s.windowsBuild(), s.system.Edition, s.cluster.Platform)
}

// windowsUnsupported requires a Windows release that the platform supports. Semi-annual releases are not included: all
// are out of support.
func windowsUnsupported(s hostSubject) string {
	platform, _ := findPlatform(s.cluster.Platform)
	if release, ok := s.findRelease(); ok && slices.Contains(platform.Windows, release.Name) {
		return ""
	}
	var supported []string
	for _, release := range WindowsReleases() {
		if slices.Contains(platform.Windows, release.Name) {
			supported = append(supported, release.String())
		}
	}
	return fmt.Sprintf("%s, build %s, is not supported on platform %s. Supported there: %s.",
		s.system.Product, s.windowsBuild(), s.cluster.Platform, policy.Enumerate(supported))
}

func windowsUpdateMissing(s hostSubject) string {
	release, _ := s.findRelease()
	if s.system.Revision >= release.MinRevision {
		return ""
	}
	return fmt.Sprintf("%s, build %s, on platform %s, lacks an update: build %s.%d (%s) or later is needed. "+
		"Update Windows.", s.system.Product, s.windowsBuild(), s.cluster.Platform, release.Version, release.MinRevision, release.MinUpdate)
}

func vxlanPortUnsupported(s hostSubject) string {
	release, _ := s.findRelease()
	if s.cluster.Network.VXLANPort == nil || release.CustomVXLANPort {
		return ""
	}
	var able []string
	for _, r := range WindowsReleases() {
		if r.CustomVXLANPort {
			able = append(able, r.Name)
		}
	}
	return fmt.Sprintf("%s, build %s, on platform %s, does not support the cluster's custom VXLAN port %d. Supported with: %s.",
		s.system.Product, s.windowsBuild(), s.cluster.Platform, *s.cluster.Network.VXLANPort, policy.Enumerate(able))
}

// Advise returns a known fault of a host's build that does not prevent the host from being a node; empty if there is
// none. The build has the form 10.0.20348.2582.
func Advise(build string) string {
	dot := strings.LastIndexByte(build, '.')
	if dot < 0 {
		return ""
	}
	revision, err := strconv.Atoi(build[dot+1:])
	if err != nil {
		return ""
	}
	for _, release := range WindowsReleases() {
		for _, advisory := range release.Advisories {
			if release.Version == build[:dot] && revision >= advisory.From && revision < advisory.Before {
				return fmt.Sprintf("with build %s of Windows, %s; build %s.%d (%s) or later fixes this.", build, advisory.Fault,
					release.Version, advisory.Before, advisory.FixedBy)
			}
		}
	}
	return ""
}
