package plan

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// setUpNetwork waits for the HNS network and makes kube-proxy's endpoint on it, as soon as nothing keeps hybrid-overlay-node from
// making the network. What needs the endpoint's address is planned when it has one.
func (m *maker) setUpNetwork() {
	network := m.spec.Network
	if network.HNSNetwork == "" || network.PodSubnet == "" || m.startsLater() {
		return
	}
	if reason := m.networkReason(); reason != "" {
		m.add(AwaitNetwork{Network: network.HNSNetwork, Subnet: network.PodSubnet}, "%s", reason)
	}
	if network.SourceVIPEndpoint != "" && m.unmet[nodespec.NeedSourceVIP] {
		m.add(CreateEndpoint{Network: network.HNSNetwork, Name: network.SourceVIPEndpoint},
			"kube-proxy has no endpoint %s to send from", network.SourceVIPEndpoint)
	}
}

// startsLater tells whether a service that does not itself wait for the network cannot start yet.
func (m *maker) startsLater() bool {
	if !m.unmet[nodespec.NeedCertificate] {
		return false
	}
	return slices.ContainsFunc(m.spec.Services, func(service nodespec.Service) bool {
		return slices.Contains(service.Needs, nodespec.NeedCertificate)
	})
}

func (m *maker) networkReason() string {
	wanted := m.spec.Network
	for _, network := range m.facts.Networks {
		if !strings.EqualFold(network.Name, wanted.HNSNetwork) {
			continue
		}
		if network.Subnet == wanted.PodSubnet {
			return ""
		}
		return "HNS network " + network.Name + " has the subnet " + network.Subnet + " instead of " + wanted.PodSubnet
	}
	return "HNS network " + wanted.HNSNetwork + " is not there yet"
}
