package plan

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Resolve replaces the spec's placeholders with facts of the host. The given spec is not changed.
func Resolve(facts Facts, spec nodespec.NodeSpec) nodespec.NodeSpec {
	var known []string
	if spec.Network.PodSubnet != "" {
		known = append(known, nodespec.PlaceholderPodSubnet, spec.Network.PodSubnet,
			nodespec.PlaceholderPodRange, nodespec.PodRangeStart(spec.Network.PodSubnet))
	}
	if address := sourceVIP(facts, spec.Network); address != "" {
		known = append(known, nodespec.PlaceholderSourceVIP, address)
	}
	replacer := strings.NewReplacer(known...)
	spec.Files = slices.Clone(spec.Files)
	for i := range spec.Files {
		spec.Files[i].Content = replacer.Replace(spec.Files[i].Content)
	}
	spec.Services = slices.Clone(spec.Services)
	for i := range spec.Services {
		spec.Services[i].CommandLine = replacer.Replace(spec.Services[i].CommandLine)
	}
	return spec
}

// sourceVIP returns the address of kube-proxy's endpoint. The result is empty without a pod subnet, without an
// endpoint, and for an endpoint that is not attached to the host, because no responses would arrive.
func sourceVIP(facts Facts, network nodespec.Network) string {
	if endpoint := sourceEndpoint(facts, network); endpoint.Attached {
		return endpoint.Address
	}
	return ""
}

// sourceEndpoint returns kube-proxy's endpoint; the zero value if the node has no pod subnet or no endpoint.
func sourceEndpoint(facts Facts, network nodespec.Network) host.HNSEndpoint {
	if network.PodSubnet == "" {
		return host.HNSEndpoint{}
	}
	for _, endpoint := range facts.Endpoints {
		if strings.EqualFold(endpoint.Name, network.SourceVIPEndpoint) && strings.EqualFold(endpoint.Network,
			network.HNSNetwork) {
			return endpoint
		}
	}
	return host.HNSEndpoint{}
}
