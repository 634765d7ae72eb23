package nodespec

// Places of the CNI plugins.
const (
	cniDirectory       = Root + `\cni`
	cniConfigDirectory = cniDirectory + `\config`
	cniConfigFile      = cniConfigDirectory + `\cni.conf`
)

// cniFiles are there only while the HNS network is: without a configuration, containerd says that its network is not
// ready, and the kubelet starts no pod.
func cniFiles(in Inputs) []File {
	return []File{inherited(cniConfigFile, cniConfiguration(in), NeedPodSubnet, NeedHNSNetwork)}
}

// cniConfiguration returns the configuration of win-overlay. Source: containernetworking/plugins,
// plugins/main/windows/win-overlay/sample-v2.conf; names are written as there, because the plugin looks for its
// policies by the exact letters. Pods get their DNS servers from the kubelet by way of the capability dns, so that none
// stand here: they would become those of pods that want the host's.
func cniConfiguration(in Inputs) string {
	serviceNetworks := ipv4Networks(in.Cluster.ServiceCIDRs)
	// Source: github.com/Microsoft/hcsshim/hcn, hcnpolicy.go. Packets to Services keep the pod's address and go into the
	// overlay.
	policies := []object{endpointPolicy("OutBoundNAT", object{"Exceptions": serviceNetworks})}
	for _, cidr := range serviceNetworks {
		policies = append(policies, endpointPolicy("SDNRoute", object{"DestinationPrefix": cidr, "NeedEncap": true}))
	}
	policies = append(policies, endpointPolicy("ProviderAddress", object{"ProviderAddress": in.Instance.NodeIP}))
	if overhead := encapOverhead(in.Cluster.Network.MTU); overhead > 0 {
		policies = append(policies, endpointPolicy("EncapOverhead", object{"Overhead": overhead}))
	}
	return encode(object{
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
	// smallestUsualMTU is what is left to a pod on Google Cloud, whose packets have 1460 bytes, by Geneve (100) and IPsec
	// (46).
	smallestUsualMTU = 1460 - 100 - 46
)

// encapOverhead is by how much a pod's packets must be smaller than those of the host's adapter, or zero to leave it to
// Windows. Windows takes the 50 bytes of VXLAN off the adapter's size, which is no larger than what the cluster's
// network does on any platform. It cannot be told a size, only what to take off; hybrid-overlay-node has no setting for
// it. So it is reported where somebody gave the cluster smaller packets than any platform needs: then the way between
// nodes is narrower than their adapters. It is counted from Ethernet's size: that of the adapter is known before the
// network is made, and nobody has seen what the virtual adapter says that takes its place then.
func encapOverhead(mtu int32) int32 {
	if mtu <= 0 || mtu >= smallestUsualMTU {
		return 0
	}
	return ethernetMTU - mtu
}
