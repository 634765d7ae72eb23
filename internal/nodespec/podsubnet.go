package nodespec

import "net/netip"

// maxReservedPrefix is the prefix length of the smallest pod subnet with reserved addresses.
const maxReservedPrefix = 29

// SourceVIPAddress returns the address of kube-proxy's endpoint: the third address of the pod subnet, after the
// network's and the gateway's. If the subnet is not IPv4 or too small, the result is empty, and Windows selects the
// address.
func SourceVIPAddress(podSubnet string) string { return addressIn(podSubnet, 2) }

// PodRangeStart returns the first address for pods: the address after kube-proxy's, which the address management
// plugin does not know. In a subnet without reserved addresses, the range starts directly after the network
// address.
func PodRangeStart(podSubnet string) string {
	if start := addressIn(podSubnet, 3); start != "" {
		return start
	}
	subnet, err := netip.ParsePrefix(podSubnet)
	if err != nil {
		return ""
	}
	return subnet.Masked().Addr().Next().String()
}

// addressIn returns the address with this offset from the network address of an IPv4 subnet.
func addressIn(podSubnet string, number int) string {
	subnet, err := netip.ParsePrefix(podSubnet)
	if err != nil || !subnet.Addr().Is4() || subnet.Bits() > maxReservedPrefix {
		return ""
	}
	address := subnet.Masked().Addr()
	for range number {
		address = address.Next()
	}
	return address.String()
}
