package plan

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// setUpNetwork waits for the HNS network and creates kube-proxy's endpoint, as soon as hybrid-overlay-node can
// create the network. Steps that need the endpoint's address are planned once the address is known.
func (m *planner) setUpNetwork() {
	network := m.spec.Network
	if network.HNSNetwork == "" || network.PodSubnet == "" || m.isWaitingForCertificate() {
		return
	}
	if reason := m.networkReason(); reason != "" {
		lacks := describeMissingNetworking(m.facts, m.spec)
		m.addOperation(AwaitNetwork{Network: network.HNSNetwork, Subnet: network.PodSubnet, Lacks: lacks, NodeIP: m.spec.NodeIP}, "%s", reason)
	}
	m.setUpEndpoint()
	m.disableRegistration()
}

// setUpEndpoint creates kube-proxy's endpoint and attaches it to the host, before kube-proxy is started.
func (m *planner) setUpEndpoint() {
	network := m.spec.Network
	if network.SourceVIPEndpoint == "" || !m.unmet[nodespec.NeedSourceVIP] {
		return
	}
	reason := "endpoint " + network.SourceVIPEndpoint + " is not attached to the host, so kube-proxy would receive no replies"
	if sourceEndpoint(m.facts, network).Name == "" {
		reason = "kube-proxy has no endpoint " + network.SourceVIPEndpoint + " to send from"
		m.addOperation(CreateEndpoint{Network: network.HNSNetwork, Name: network.SourceVIPEndpoint,
			Address: nodespec.SourceVIPAddress(network.PodSubnet)}, "%s", reason)
	}
	m.addOperation(AttachEndpoint{Name: network.SourceVIPEndpoint}, "%s", reason)
}

// removeNetworkFiles removes the files that must not exist before the HNS network, before their services are
// started: a kubelet with a configured CNI plugin accepts pods. The files are written again when the network
// exists. R-089
func (m *planner) removeNetworkFiles() {
	for _, file := range m.spec.Files {
		if _, there := m.facts.Files[file.Path]; there && needsNetwork(file) && m.unmet[nodespec.NeedHNSNetwork] {
			m.addOperation(RemovePath{Path: file.Path}, "%s, and pods must not start before that", m.networkReason())
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
		return needsNetwork(file) && nodespec.IsSamePath(file.Path, path)
	})
}

// markSubnetChange marks the steps that change the pod subnet as disruptive. Running pods have addresses of the former
// subnet, are no longer reachable, and must be recreated.
func (m *planner) markSubnetChange() {
	if before, now := m.facts.PodSubnet, m.spec.Network.PodSubnet; before == "" || now == "" || before == now {
		return
	}
	for i := range m.steps {
		switch m.steps[i].Operation.(type) {
		case AwaitNetwork, CreateEndpoint, AttachEndpoint:
			m.steps[i].DisruptsPods = true
		default:
			m.steps[i].DisruptsPods = m.steps[i].DisruptsPods || IsForNetwork(m.steps[i], m.spec)
		}
	}
}

// isWaitingForCertificate reports whether services cannot start yet because the kubelet's certificate is missing.
func (m *planner) isWaitingForCertificate() bool {
	if !m.unmet[nodespec.NeedCertificate] {
		return false
	}
	return slices.ContainsFunc(m.spec.Services, func(service nodespec.Service) bool {
		return slices.Contains(service.Needs, nodespec.NeedCertificate)
	})
}

// networkReason returns the difference between the current and the desired pod network; empty for none. Before a
// pod subnet is assigned, any subnet is accepted.
func (m *planner) networkReason() string {
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
	return "HNS network " + wanted.HNSNetwork + " does not exist yet"
}

// DescribeAdapterMismatch returns the problem of an HNS network that uses a host address other than the node's
// address; empty for none. An address that the host does not have is no evidence: HNS may report an address that
// DHCP has replaced, and the node's own address may have changed.
func DescribeAdapterMismatch(network host.HNSNetwork, nodeIP string, addresses []string) string {
	used := network.ManagementIP
	if used == nodeIP || !slices.Contains(addresses, used) || !slices.Contains(addresses, nodeIP) {
		return ""
	}
	return "HNS network " + network.Name + " uses the host's address " + used + " and not the node's address " + nodeIP +
		", so that other nodes may not reach the pods of this node. Disable the adapter with the address " + used +
		", or remove that address, and restart the host"
}
