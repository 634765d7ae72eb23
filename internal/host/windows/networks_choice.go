package windows

import (
	"net/netip"
	"slices"
	"strings"
)

// subnetOf returns the first IPv4 prefix, otherwise the first prefix, or "" if no prefix is valid.
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

// addressOf returns the first IPv4 address, otherwise the first address, or "" if no address is valid.
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

// prefixLengthOf returns the prefix length of a subnet. For an invalid subnet, it returns zero and HNS chooses the
// length.
func prefixLengthOf(subnet string) uint8 {
	prefix, err := netip.ParsePrefix(subnet)
	if err != nil {
		return 0
	}
	return uint8(prefix.Bits())
}

// lacksHostRoute reports whether a network with policies of these kinds prevents its endpoints and the machine from
// reaching each other. An empty list may be incomplete, because HNS does not always list policies.
func lacksHostRoute(policies []string) bool {
	return len(policies) > 0 && !slices.ContainsFunc(policies, func(kind string) bool { return strings.EqualFold(kind, "HostRoute") })
}
