package windows

import (
	"net/netip"
	"slices"
)

// route is an IPv4 route.
type route struct {
	destination netip.Prefix
	nextHop     netip.Addr // 0.0.0.0 for an on-link destination
	index       uint32     // of the adapter
	metric      uint32     // of the route, without the metric of the adapter
}

// defaultOf returns the active default route: the route with the lowest sum of the route metric and the adapter
// metric. Inactive adapters do not count.
func defaultOf(adapters []adapter, routes []route) (best route, found bool) {
	lowest := uint64(0)
	for _, each := range routes {
		i := slices.IndexFunc(adapters, func(a adapter) bool { return a.index == each.index })
		if each.destination.Bits() != 0 || i < 0 {
			continue
		}
		if total := uint64(each.metric) + uint64(adapters[i].metric); !found || total < lowest {
			best, lowest, found = each, total, true
		}
	}
	return best, found
}

// destinationsVia returns the sorted, unique destinations of all routes through an adapter.
func destinationsVia(index uint32, routes []route) []string {
	var list []string
	for _, each := range routes {
		if each.index == index {
			list = append(list, each.destination.String())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
