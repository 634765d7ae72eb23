package windows

import (
	"net/netip"
	"slices"
	"strings"
)

// subnetOf returns the subnet of a network with these prefixes: its first IPv4 one, else its first. Empty when there is
// none.
func subnetOf(prefixes []string) string {
	first := ""
	for _, prefix := range prefixes {
		subnet, err := netip.ParsePrefix(prefix)
		if err != nil {
			continue
		}
		if subnet.Addr().Is4() {
			return prefix
		}
		if first == "" {
			first = prefix
		}
	}
	return first
}

// addressOf returns the address of an endpoint with these addresses: its first IPv4 one, else its first. Empty when
// there is none.
func addressOf(addresses []string) string {
	first := ""
	for _, text := range addresses {
		address, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		if address.Is4() {
			return text
		}
		if first == "" {
			first = text
		}
	}
	return first
}

// prefixLengthOf returns the length of a subnet's prefix; zero, which leaves it to HNS, for what is none.
func prefixLengthOf(subnet string) uint8 {
	prefix, err := netip.ParsePrefix(subnet)
	if err != nil {
		return 0
	}
	return uint8(prefix.Bits())
}

// lacksHostRoute reports whether a network with policies of these kinds lets its endpoints and the machine not reach each
// other. Without any policy, HNS may not list them.
func lacksHostRoute(policies []string) bool {
	return len(policies) > 0 && !slices.ContainsFunc(policies, func(kind string) bool { return strings.EqualFold(kind, "HostRoute") })
}
