package nodename

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// nonHostNetworks are networks without host addresses that net/netip does not know. Source: RFC 6890, section 2.2.2.
var nonHostNetworks = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4")}

// ReservedAddress describes an address that no node may serve under; empty if the address may belong to a node. If
// cluster is nil, only the general rules apply.
func ReservedAddress(address netip.Addr, cluster *nodespec.Cluster) string {
	address = address.Unmap()
	if !address.IsGlobalUnicast() || slices.ContainsFunc(nonHostNetworks, func(network netip.Prefix) bool {
		return network.Contains(address)
	}) {
		return "not the address of a single host"
	}
	if cluster == nil {
		return ""
	}
	for _, networks := range []struct {
		texts []string
		whose string
	}{
		{cluster.ServiceCIDRs, "in the network of Services"},
		{cluster.Network.PodNetworks, "in the network of pods"},
		{cluster.Network.HybridClusterNetworks, "in the network of Windows pods"},
	} {
		for _, text := range networks.texts {
			if network, err := netip.ParsePrefix(text); err == nil && network.Contains(address) {
				return networks.whose
			}
		}
	}
	is := func(text string) bool {
		other, err := netip.ParseAddr(text)
		return err == nil && other.Unmap() == address
	}
	switch {
	case slices.ContainsFunc(cluster.VirtualIPs, is):
		return "a virtual address of the cluster"
	case slices.ContainsFunc(apiServers(cluster), is):
		return "an address of the API server"
	}
	return ""
}

// ReservedName describes a DNS name that no node may have or serve under; empty if the name may belong to a node. For
// example, pods would mistake a host named kubernetes for the API server.
func ReservedName(name string, cluster *nodespec.Cluster) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if isInDomain(name, "localhost") || isInDomain(name, "localdomain") {
		return "a loopback name of every host"
	}
	domain := "cluster.local"
	if cluster != nil && cluster.Kubelet.ClusterDomain != "" {
		domain = strings.ToLower(cluster.Kubelet.ClusterDomain)
	}
	if name == "kubernetes" || name == "kubernetes.default" || isInDomain(name, "svc") || isInDomain(name, domain) {
		return "the name of a Service"
	}
	if cluster == nil {
		return ""
	}
	for _, server := range apiServers(cluster) {
		if whose := describeClusterName(name, strings.ToLower(server)); whose != "" {
			return whose
		}
	}
	return ""
}

// isInDomain reports whether a name is a domain or is in it.
func isInDomain(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}

// describeClusterName describes the use of a name in the domain of the cluster. The domain is known if the API server
// has the name that the installer assigns: api-int or api in that domain.
func describeClusterName(name, server string) string {
	if name == server {
		return "a name of the API server"
	}
	label, domain, _ := strings.Cut(server, ".")
	if label != "api-int" && label != "api" || domain == "" {
		return ""
	}
	for _, other := range []string{"api-int", "api"} {
		if name == other || name == other+"."+domain {
			return "a name of the API server"
		}
	}
	if isInDomain(name, "apps."+domain) {
		return "the name of a Route"
	}
	return ""
}

// apiServers returns the host names or addresses of the API server.
func apiServers(cluster *nodespec.Cluster) []string {
	var servers []string
	for _, text := range []string{cluster.APIServerInternalURL, cluster.APIServerURL} {
		if server, err := url.Parse(text); err == nil && server.Hostname() != "" {
			servers = append(servers, server.Hostname())
		}
	}
	return servers
}

// NoHostAt describes an IP address that cannot belong to a Windows host; empty if it can. The check also applies to
// the resolved address of an entry: a right to list hosts must not make the operator connect to its own machine, a
// cloud's metadata service or the cluster's Services.
func NoHostAt(address netip.Addr, cluster nodespec.Cluster) string {
	return ReservedAddress(address, &cluster)
}

// IsAPIServerName reports whether an entry names the cluster's own API server. The machines of the API server are
// never Windows hosts.
func IsAPIServerName(name string, cluster nodespec.Cluster) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(apiServers(&cluster), func(server string) bool {
		label, domain, _ := strings.Cut(strings.ToLower(server), ".")
		return name == strings.ToLower(server) || (label == "api-int" || label == "api") && (name == "api-int."+domain || name == "api."+domain)
	})
}
