package support

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// SupportNode decides whether a new host with the Windows build of a node would be supported. A kubelet reports the
// build with its revision as the kernel version: 10.0.20348.681. A node without such a report counts as supported.
func (line ReleaseLine) SupportNode(info corev1.NodeSystemInfo, cluster nodespec.Cluster) policy.Decision {
	return line.SupportBuild(info.OSImage, info.KernelVersion, cluster)
}

// SupportBuild decides whether a new host with a build of Windows Server would be supported. A text that is not a
// build counts as supported.
func (line ReleaseLine) SupportBuild(product, build string, cluster nodespec.Cluster) policy.Decision {
	system, ok := parseBuild(build)
	if !ok {
		return policy.Decision{Allowed: true}
	}
	system.Product = product
	return line.SupportHost(system, cluster)
}

// IsBuild reports whether a text is a build of Windows with its revision.
func IsBuild(text string) bool {
	_, ok := parseBuild(text)
	return ok
}

// parseBuild returns the system for a build of Windows Server on amd64.
func parseBuild(build string) (host.SystemInfo, bool) {
	parts := strings.Split(build, ".")
	if len(parts) != 4 {
		return host.SystemInfo{}, false
	}
	var revision int
	for _, part := range parts {
		number, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return host.SystemInfo{}, false
		}
		revision = int(number)
	}
	return host.SystemInfo{
		Edition: "Server", Version: strings.Join(parts[:3], "."), Revision: revision, Architecture: "amd64",
	}, true
}
