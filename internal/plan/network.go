package plan

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// setUpNetwork waits for the HNS network and makes kube-proxy's endpoint on it, as soon as nothing keeps
// hybrid-overlay-node from making the network. What needs the endpoint's address is planned when it has one.
func (m *maker) setUpNetwork() {
	network := m.spec.Network
	if network.HNSNetwork == "" || network.PodSubnet == "" || m.startsLater() {
		return
	}
	if reason := m.networkReason(); reason != "" {
		lacks := lackingNetworking(m.facts, m.spec)
		m.add(AwaitNetwork{Network: network.HNSNetwork, Subnet: network.PodSubnet, Lacks: lacks, NodeIP: m.spec.NodeIP}, "%s", reason)
	}
	m.setUpEndpoint()
	m.disableRegistration()
}

// setUpEndpoint makes kube-proxy's endpoint and gives it to the host, before kube-proxy is started.
func (m *maker) setUpEndpoint() {
	network := m.spec.Network
	if network.SourceVIPEndpoint == "" || !m.unmet[nodespec.NeedSourceVIP] {
		return
	}
	reason := "endpoint " + network.SourceVIPEndpoint + " is not attached to the host, so kube-proxy would receive no replies"
	if sourceEndpoint(m.facts, network).Name == "" {
		reason = "kube-proxy has no endpoint " + network.SourceVIPEndpoint + " to send from"
		m.add(CreateEndpoint{Network: network.HNSNetwork, Name: network.SourceVIPEndpoint,
			Address: nodespec.SourceVIPAddress(network.PodSubnet)}, "%s", reason)
	}
	m.add(AttachEndpoint{Name: network.SourceVIPEndpoint}, "%s", reason)
}

// takeAwayForNetwork takes away what is not to be there before the HNS network, before a service starts that would use
// it: a kubelet that finds the configuration of the CNI plugin takes pods. It is written again when the network is
// there. R-089
func (m *maker) takeAwayForNetwork() {
	for _, file := range m.spec.Files {
		if _, there := m.facts.Files[file.Path]; there && needsNetwork(file) && m.unmet[nodespec.NeedHNSNetwork] {
			m.add(RemovePath{Path: file.Path}, "%s, and no pod must start before it runs", m.networkReason())
		}
	}
}

func needsNetwork(file nodespec.File) bool {
	return slices.Contains(file.Needs, nodespec.NeedHNSNetwork)
}

// IsForNetwork reports whether a step removes or writes a file of the spec that exists only together with the HNS
// network.
func IsForNetwork(step Step, spec nodespec.NodeSpec) bool {
	path := ""
	switch o := step.Operation.(type) {
	case RemovePath:
		path = o.Path
	case WriteFile:
		path = o.File.Path
	}
	return slices.ContainsFunc(spec.Files, func(file nodespec.File) bool {
		return needsNetwork(file) && nodespec.SamePath(file.Path, path)
	})
}

// markSubnet says of the steps that bring another pod subnet that pods feel them: those that run have addresses of the
// former one, from where nobody reaches them any more, and must come again.
func (m *maker) markSubnet() {
	if before, now := m.facts.PodSubnet, m.spec.Network.PodSubnet; before == "" || now == "" || before == now {
		return
	}
	for i := range m.steps {
		switch m.steps[i].Operation.(type) {
		case AwaitNetwork, CreateEndpoint, AttachEndpoint:
			m.steps[i].DisturbsPods = true
		default:
			m.steps[i].DisturbsPods = m.steps[i].DisturbsPods || IsForNetwork(m.steps[i], m.spec)
		}
	}
}

// startsLater reports whether a service that does not itself wait for the network cannot start yet.
func (m *maker) startsLater() bool {
	if !m.unmet[nodespec.NeedCertificate] {
		return false
	}
	return slices.ContainsFunc(m.spec.Services, func(service nodespec.Service) bool {
		return slices.Contains(service.Needs, nodespec.NeedCertificate)
	})
}

// networkReason says why the pods' network is not as it should be; empty when it is. As long as the node has no pod
// subnet, any will do.
func (m *maker) networkReason() string {
	wanted := m.spec.Network
	if wanted.HNSNetwork == "" {
		return ""
	}
	for _, network := range m.facts.Networks {
		if !strings.EqualFold(network.Name, wanted.HNSNetwork) {
			continue
		}
		if network.Subnet == wanted.PodSubnet || wanted.PodSubnet == "" {
			return ""
		}
		return "HNS network " + network.Name + " has the subnet " + network.Subnet + " instead of " + wanted.PodSubnet
	}
	return "HNS network " + wanted.HNSNetwork + " is not there yet"
}

// DescribeAdapterMismatch returns the fault of an HNS network that uses another address of the host than the node's; empty
// for none. An address that the host does not have proves nothing: HNS may report one that DHCP has
// replaced, and the node's own address may have changed.
func DescribeAdapterMismatch(network host.HNSNetwork, nodeIP string, addresses []string) string {
	used := network.ManagementIP
	if used == nodeIP || !slices.Contains(addresses, used) || !slices.Contains(addresses, nodeIP) {
		return ""
	}
	return "HNS network " + network.Name + " uses the host's address " + used + " and not the node's address " + nodeIP +
		", so that other nodes may not reach the pods of this node. Disable the adapter with the address " + used +
		", or remove that address, and restart the host"
}
