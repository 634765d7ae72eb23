package windows

import (
	"net/netip"
	"slices"
)

// route is an IPv4 route.
type route struct {
	destination netip.Prefix
	nextHop     netip.Addr // 0.0.0.0: what is on the link itself
	index       uint32     // of its adapter
	metric      uint32     // of the route; Windows adds that of the adapter
}

// defaultOf returns the default route in force: the one with the lowest sum of its metric and its adapter's. Adapters
// that are not up do not count.
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

// destinationsVia returns the destinations of all routes through an adapter, sorted, each once.
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
