package support

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// clusterSubject is a cluster, and the operator's release line for it.
type clusterSubject struct {
	nodespec.Cluster
	line ReleaseLine
	// version is nil if the cluster has no valid version.
	version *version.Version
}

// SupportCluster decides whether hosts can be nodes of the cluster at all, with an operator of this line. It needs no
// host, and is called before any host is contacted.
func (line ReleaseLine) SupportCluster(cluster nodespec.Cluster) policy.Decision {
	allowed := fmt.Sprintf("OpenShift %s on platform %s with OVN-Kubernetes and hybrid networking is supported.",
		cluster.Version, cluster.Platform)
	parsed, err := version.ParseSemantic(cluster.Version)
	if err != nil {
		parsed = nil
	}
	return policy.Decide(clusterSubject{cluster, line, parsed}, allowed, []policy.Check[clusterSubject]{
		{Name: "ClusterTooOld", Reason: v1alpha1.ReasonClusterVersionUnsupported, Violation: clusterTooOld},
		{Name: "ClusterVersionUnsupported", Reason: v1alpha1.ReasonClusterVersionUnsupported, Violation: clusterVersionUnsupported},
		{Name: "ClusterPatchTooOld", Reason: v1alpha1.ReasonClusterVersionUnsupported, Violation: clusterPatchTooOld},
		{Name: "PlatformUnsupported", Reason: v1alpha1.ReasonPlatformUnsupported, Violation: platformUnknown},
		{Name: "NetworkTypeUnsupported", Reason: v1alpha1.ReasonNetworkUnsupported, Violation: networkTypeUnsupported},
		{Name: "HybridOverlayDisabled", Reason: v1alpha1.ReasonNetworkUnsupported, Violation: hybridOverlayDisabled},
		{Name: "CustomVXLANPortMissing", Reason: v1alpha1.ReasonNetworkUnsupported, Violation: customVXLANPortMissing},
	})
}

// clusterTooOld applies to every release of the operator, regardless of the supported range.
func clusterTooOld(s clusterSubject) string {
	switch {
	case s.version == nil:
		return fmt.Sprintf("The version %q of the cluster is not an OpenShift version: it must be three numbers, as in %s.0.",
			s.Version, s.line.Newest().OpenShift)
	case s.version.LessThan(version.MustParseSemantic(MinClusterVersion)):
		return fmt.Sprintf("The cluster is OpenShift %s. Windows nodes need OpenShift %s or later. Upgrade the cluster.",
			s.Version, MinClusterVersion)
	}
	return ""
}

// clusterVersionUnsupported requires a minor version that the line serves. In an older cluster the kubelets would be
// newer than the API server, which Kubernetes does not allow. A slightly newer cluster is served with the newest
// kubelet, because nodes without maintenance are the worse alternative.
func clusterVersionUnsupported(s clusterSubject) string {
	if _, served := s.line.MinorFor(s.Version); served {
		return ""
	}
	step := "Upgrade the cluster, or install the release of the operator for this version."
	if s.version.WithPreRelease("").GreaterThan(version.MustParseGeneric(s.line.Newest().OpenShift)) {
		step = "Upgrade the operator."
	}
	return fmt.Sprintf("The cluster is OpenShift %s. This operator, of release line %d, supports %s. %s",
		s.Version, s.line.Operator, s.line.formatServed(), step)
}

// clusterPatchTooOld requires the minimum patch version of the cluster's minor version. A pre-release counts as the
// version that follows it. OKD releases have no patch version: the counter is in the pre-release part, as in
// 5.0.0-okd-scos.3.
func clusterPatchTooOld(s clusterSubject) string {
	minor, _ := s.line.MinorFor(s.Version)
	if !isSameMinor(s.version, version.MustParseGeneric(minor.OpenShift)) || s.version.Patch() >= minor.MinPatch ||
		strings.Contains(s.version.PreRelease(), "okd-") {
		return ""
	}
	return fmt.Sprintf("The cluster is OpenShift %s. This operator, of release line %d, needs OpenShift %s or a later patch version of %s. Upgrade the cluster.",
		s.Version, s.line.Operator, minor.MinVersion(), minor.OpenShift)
}

func platformUnknown(s clusterSubject) string {
	if _, ok := findPlatform(s.Platform); ok {
		return ""
	}
	var names []string
	for _, p := range Platforms() {
		names = append(names, p.Name)
	}
	return fmt.Sprintf("The cluster's platform is %q. Windows nodes are supported on the platforms %s.",
		s.Platform, policy.Enumerate(names))
}

func networkTypeUnsupported(s clusterSubject) string {
	if s.Network.Type == "OVNKubernetes" {
		return ""
	}
	return fmt.Sprintf("The cluster's network is %q. Windows nodes need OVN-Kubernetes with hybrid networking. The type of the network is chosen when the cluster is installed.",
		s.Network.Type)
}

func hybridOverlayDisabled(s clusterSubject) string {
	if s.Network.HybridOverlay {
		return ""
	}
	platform, _ := findPlatform(s.Platform)
	return fmt.Sprintf("OVN-Kubernetes has no hybrid networking, which Windows nodes need: hybridOverlayConfig.hybridClusterNetwork of "+
		"Network.operator.openshift.io/cluster is empty. Enable it with: %s (choose a network that nothing else uses).",
		patchOverlay(exampleOverlayConfig(s.Network.HybridClusterNetworks, platform.CustomVXLANPort)))
}

func customVXLANPortMissing(s clusterSubject) string {
	platform, _ := findPlatform(s.Platform)
	if !platform.CustomVXLANPort || s.Network.VXLANPort != nil {
		return ""
	}
	return fmt.Sprintf("On platform %s hybrid networking needs a custom VXLAN port, and the cluster has none: hybridOverlayConfig.hybridOverlayVXLANPort of "+
		"Network.operator.openshift.io/cluster must be another port than 4789. The network operator does not change an enabled overlay. "+
		"Before a Windows node joins, disable it with: %s (wait until the network operator has done that), and enable it again with: %s (choose the port).",
		s.Platform, patchOverlay("null"), patchOverlay(exampleOverlayConfig(s.Network.HybridClusterNetworks, true)))
}

// patchOverlay returns the command that sets the hybrid overlay. The network operator enables and disables an
// overlay, and refuses any other change. Source: isOVNKubernetesChangeSafe of cluster-network-operator, pkg/network.
func patchOverlay(value string) string {
	return `oc patch networks.operator.openshift.io cluster --type=merge -p '{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"hybridOverlayConfig":` +
		value + `}}}}'`
}

// Values from OpenShift's documentation of the hybrid overlay.
const (
	exampleOverlayNetwork = "10.132.0.0/14"
	exampleOverlayPrefix  = 23
	exampleVXLANPort      = 9898
)

// exampleOverlayConfig returns a configuration of the hybrid overlay: with the cluster's network for it, if there is
// one, and a VXLAN port if needed.
func exampleOverlayConfig(networks []string, withPort bool) string {
	network := exampleOverlayNetwork
	if len(networks) == 1 {
		if prefix, err := netip.ParsePrefix(networks[0]); err == nil && prefix.Addr().Is4() && prefix.Bits() <= exampleOverlayPrefix {
			network = networks[0]
		}
	}
	port := ""
	if withPort {
		port = fmt.Sprintf(`,"hybridOverlayVXLANPort":%d`, exampleVXLANPort)
	}
	return fmt.Sprintf(`{"hybridClusterNetwork":[{"cidr":%q,"hostPrefix":%d}]%s}`, network, exampleOverlayPrefix, port)
}
