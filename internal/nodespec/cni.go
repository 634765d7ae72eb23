package nodespec

// Paths of the CNI plugins.
const (
	cniDirectory       = Root + `\cni`
	cniConfigDirectory = cniDirectory + `\config`
	cniConfigFile      = cniConfigDirectory + `\cni.conf`
)

// cniFiles returns the CNI configuration, which exists only while the HNS network exists. Without a configuration,
// containerd reports that the network is not ready, and the kubelet starts no pod.
func cniFiles(in Inputs) []File {
	return []File{newInheritedFile(cniConfigFile, cniConfiguration(in), NeedPodSubnet, NeedHNSNetwork)}
}

// cniConfiguration returns the configuration of win-overlay. Source: containernetworking/plugins,
// plugins/main/windows/win-overlay/sample-v2.conf. Names are spelled as in the sample, because the plugin matches
// policy names case-sensitively. Pods get DNS servers from the kubelet through the capability dns. DNS servers in
// this file would also apply to pods with the DNS policy of the host.
func cniConfiguration(in Inputs) string {
	serviceNetworks := ipv4Networks(in.Cluster.ServiceCIDRs)
	// Source: github.com/Microsoft/hcsshim/hcn, hcnpolicy.go. Packets to Services keep the pod's address and enter
	// the overlay.
	policies := []object{endpointPolicy("OutBoundNAT", object{"Exceptions": serviceNetworks})}
	for _, cidr := range serviceNetworks {
		policies = append(policies, endpointPolicy("SDNRoute", object{"DestinationPrefix": cidr, "NeedEncap": true}))
	}
	policies = append(policies, endpointPolicy("ProviderAddress", object{"ProviderAddress": in.Instance.NodeIP}))
	if overhead := encapOverhead(in.Cluster.Network.MTU); overhead > 0 {
		policies = append(policies, endpointPolicy("EncapOverhead", object{"Overhead": overhead}))
	}
	return encodeJSON(object{
		"cniVersion": "0.2.0", "name": hnsNetwork, "type": "win-overlay", "apiVersion": 2,
		"capabilities": object{"portMappings": true, "dns": true},
		// The address before the range belongs to kube-proxy's endpoint.
		"ipam":     object{"type": "host-local", "subnet": PlaceholderPodSubnet, "rangeStart": PlaceholderPodRange},
		"policies": policies,
	})
}

func endpointPolicy(kind string, settings object) object {
	return object{"name": "EndpointPolicy", "value": object{"Type": kind, "Settings": settings}}
}

const (
	ethernetMTU = 1500
	// minUsualMTU is the MTU of a pod on Google Cloud (1460 bytes) after the overhead of Geneve (100) and
	// IPsec (46).
	minUsualMTU = 1460 - 100 - 46
)

// encapOverhead returns the number of bytes by which a pod's packets must be smaller than the packets of the host's
// adapter. Zero selects the default of Windows: 50 bytes for VXLAN, no more than the overhead of the cluster
// network on any platform. Windows accepts only this difference and no size, and hybrid-overlay-node has no setting
// for the difference. The result is not zero only if the cluster's MTU is smaller than any platform requires: then
// the path between nodes has a smaller MTU than the adapters. The difference is calculated from the MTU of
// Ethernet. The adapter's MTU is known only before the network is created; the MTU of the virtual adapter that
// replaces the adapter was never observed.
func encapOverhead(mtu int32) int32 {
	if mtu <= 0 || mtu >= minUsualMTU {
		return 0
	}
	return ethernetMTU - mtu
}
