package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// readNetwork reads the active plugin and service networks. The policy decides which plugins support Windows
// nodes.
func readNetwork(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
	const id = "Network.config.openshift.io cluster"
	network := &configv1.Network{}
	if err := get(ctx, reader, "cluster", network, id,
		"The installer creates it; without it no node can be configured."); err != nil {
		return err
	}
	facts.Network.Type = network.Status.NetworkType
	if facts.Network.Type == "" {
		return &Error{Object: id, Field: "status.networkType",
			Message: "it is empty. The cluster network operator sets it once the network is up."}
	}
	services := network.Status.ServiceNetwork
	if err := checkNetworks(services); err != nil {
		return &Error{Object: id, Field: "status.serviceNetwork", Message: err.Error()}
	}
	if !slices.ContainsFunc(services, isIPv4Network) {
		return &Error{Object: id, Field: "status.serviceNetwork",
			Message: "it contains no IPv4 network. Windows nodes need one."}
	}
	facts.ServiceCIDRs = services
	for _, entry := range network.Status.ClusterNetwork {
		facts.Network.PodNetworks = append(facts.Network.PodNetworks, entry.CIDR)
	}
	mtu := network.Status.ClusterNetworkMTU
	if mtu < 0 || mtu > maxMTU {
		return &Error{Object: id, Field: "status.clusterNetworkMTU",
			Message: fmt.Sprintf("%d is not a valid packet size. The cluster network operator sets it.", mtu)}
	}
	facts.Network.MTU = int32(mtu)
	return nil
}

// readHybridOverlay reads the settings of OVN-Kubernetes for Windows nodes.
func (n *notices) readHybridOverlay(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
	const id = "Network.operator.openshift.io cluster"
	network := &operatorv1.Network{}
	if err := get(ctx, reader, "cluster", network, id,
		"The cluster network operator creates it; without it no node can be configured."); err != nil {
		return err
	}
	if migration := network.Spec.Migration; migration != nil && migration.MTU != nil {
		n.addNotice(subject{id, network.ResourceVersion}, "spec.migration.mtu",
			"Windows nodes do not take part in the migration of the MTU: they keep their MTU until the new one is in Network.config.openshift.io cluster, "+
				"status.clusterNetworkMTU. Drain the Windows nodes until the migration is complete. If the MTU of the machines changes, set it on the network adapters of the Windows hosts.")
	}
	ovn := network.Spec.DefaultNetwork.OVNKubernetesConfig
	if ovn == nil {
		return nil
	}
	if isPodTrafficEncrypted(ovn.IPsecConfig) {
		n.addNotice(subject{id, network.ResourceVersion}, "spec.defaultNetwork.ovnKubernetesConfig.ipsecConfig",
			"IPsec does not encrypt the traffic between pods on Windows nodes and other nodes. Use TLS between these pods, or a network that is trusted.")
	}
	if ovn.HybridOverlayConfig == nil {
		return nil
	}
	const field = "spec.defaultNetwork.ovnKubernetesConfig.hybridOverlayConfig"
	for _, entry := range ovn.HybridOverlayConfig.HybridClusterNetwork {
		facts.Network.HybridClusterNetworks = append(facts.Network.HybridClusterNetworks, entry.CIDR)
		facts.Network.HybridSubnets += countSubnets(entry)
	}
	if err := checkNetworks(facts.Network.HybridClusterNetworks); err != nil {
		return &Error{Object: id, Field: field + ".hybridClusterNetwork", Message: err.Error()}
	}
	facts.Network.HybridOverlay = len(facts.Network.HybridClusterNetworks) > 0
	port := ovn.HybridOverlayConfig.HybridOverlayVXLANPort
	if port == nil || *port == defaultVXLANPort {
		return nil
	}
	if *port == 0 || *port > 65535 {
		return &Error{Object: id, Field: field + ".hybridOverlayVXLANPort",
			Message: fmt.Sprintf("%d is not a port number. Use 1 to 65535.", *port)}
	}
	custom := int32(*port)
	facts.Network.VXLANPort = &custom
	return nil
}

// isPodTrafficEncrypted reports whether IPsec encrypts the traffic between pods. A configuration without a mode was
// enabled before modes existed.
func isPodTrafficEncrypted(ipsec *operatorv1.IPsecConfig) bool {
	return ipsec != nil && (ipsec.Mode == operatorv1.IPsecModeFull || ipsec.Mode == "")
}

// countSubnets returns the number of pod subnets of a network; zero if unknown.
func countSubnets(entry operatorv1.ClusterNetworkEntry) int {
	network, err := netip.ParsePrefix(entry.CIDR)
	if err != nil || int(entry.HostPrefix) < network.Bits() || int(entry.HostPrefix) > network.Addr().BitLen() {
		return 0
	}
	return 1 << min(int(entry.HostPrefix)-network.Bits(), maxSubnetBits)
}

// maxSubnetBits limits the exponent for IPv6 networks: no cluster has as many nodes.
const maxSubnetBits = 24

// defaultVXLANPort is the default port of HNS. Source: hybridOverlayVXLANPort of the Network operator's API,
// "Default is 4789".
const defaultVXLANPort = 4789

// maxMTU is the maximum MTU of IP.
const maxMTU = 65535

func checkNetworks(networks []string) error {
	for _, network := range networks {
		if _, err := netip.ParsePrefix(network); err != nil {
			return fmt.Errorf("%q is not a network in the form 10.0.0.0/16", network)
		}
	}
	return nil
}

func isIPv4Network(network string) bool {
	prefix, err := netip.ParsePrefix(network)
	return err == nil && prefix.Addr().Is4()
}
