package windows

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// adapter is a network adapter with its IPv4 addresses.
type adapter struct {
	index     uint32
	metric    uint32 // of the adapter, without the route
	name      string // "vEthernet (Ethernet 2)"
	id        string // "{GUID}", the name of the registry key
	mac       net.HardwareAddr
	addresses []netip.Addr
	dhcp      bool
}

// machineAdapters returns the adapters for connections to the machine itself. For the attached endpoint of kube-proxy,
// Windows creates another adapter with the name of the endpoint. That adapter has an address of the pod subnet and
// possibly a default route into that subnet.
func machineAdapters(all []adapter) []adapter {
	return slices.DeleteFunc(slices.Clone(all), func(a adapter) bool { return a.isOf(host.SourceVIPEndpoint) })
}

// isOf reports whether Windows created the adapter for the endpoint. Windows appends a number to a name in use.
func (a adapter) isOf(endpoint string) bool {
	return strings.HasPrefix(strings.ToLower(a.name), strings.ToLower("vEthernet ("+endpoint+")"))
}

// endpointAdapter returns the identifier of the machine's adapter for an endpoint, or "" if there is no adapter. An
// adapter of that name with another address is stale.
func endpointAdapter(all []adapter, endpoint, address string) string {
	for _, a := range all {
		if a.isOf(endpoint) && slices.ContainsFunc(a.addresses, func(own netip.Addr) bool { return own.String() == address }) {
			return a.id
		}
	}
	return ""
}

// defaultRoute is a route to 0.0.0.0/0.
type defaultRoute struct {
	index  uint32 // of the adapter
	metric uint32 // of the route, without the metric of the adapter
}

// orderAddresses returns the addresses for connections from other machines, starting with the adapter of the best
// default route. Loopback and self-assigned addresses (169.254.0.0/16) are excluded.
func orderAddresses(adapters []adapter, routes []defaultRoute) []string {
	adapterMetric := map[uint32]uint32{}
	for _, a := range adapters {
		adapterMetric[a.index] = a.metric
	}
	rank := map[uint32]uint64{}
	for _, route := range routes {
		metric, there := adapterMetric[route.index]
		total := uint64(metric) + uint64(route.metric)
		if known, ranked := rank[route.index]; there && (!ranked || total < known) {
			rank[route.index] = total
		}
	}
	sorted := slices.Clone(adapters)
	slices.SortStableFunc(sorted, func(a, b adapter) int { return cmp.Compare(rankOf(rank, a), rankOf(rank, b)) })
	var list []string
	for _, a := range sorted {
		for _, address := range a.addresses {
			if address.Is4() && !address.IsLoopback() && !address.IsLinkLocalUnicast() && !address.IsUnspecified() {
				list = append(list, address.String())
			}
		}
	}
	return list
}

// hasStaticAddress reports whether the adapter with the best default route has an address that does not come from DHCP.
func hasStaticAddress(adapters []adapter, routes []route) bool {
	best, found := defaultOf(adapters, routes)
	return found && slices.ContainsFunc(adapters, func(a adapter) bool {
		return a.index == best.index && !a.dhcp && len(a.addresses) > 0
	})
}

// rankOf returns the rank of an adapter. Adapters without a default route have the last rank.
func rankOf(rank map[uint32]uint64, a adapter) uint64 {
	if total, ranked := rank[a.index]; ranked {
		return total
	}
	return 1 << 40
}
