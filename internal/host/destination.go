package host

import (
	"fmt"
	"net/netip"
)

// ParseDestination parses the destination of a route: an IPv4 network in CIDR notation without host bits. The
// default route is rejected because the agent must never change it.
func ParseDestination(destination string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(destination)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%.80q is not a destination of a route: %w", destination, err)
	case !prefix.Addr().Is4():
		return netip.Prefix{}, fmt.Errorf("%s is not a destination of a route: it must be an IPv4 network", destination)
	case prefix != prefix.Masked():
		return netip.Prefix{}, fmt.Errorf("%s is not a destination of a route: the network is %s",
			destination, prefix.Masked())
	case prefix.Bits() == 0:
		return netip.Prefix{}, fmt.Errorf("the default route must not be changed")
	}
	return prefix, nil
}
