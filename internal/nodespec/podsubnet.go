package nodespec

import "net/netip"

// smallestSubnet is the prefix length of the smallest pod subnet of which addresses are set aside.
const smallestSubnet = 29

// SourceVIPAddress returns the address of kube-proxy's endpoint: the third of the pod subnet, after the network's own
// and its gateway's. Empty, which leaves it to Windows, for what is no IPv4 subnet or too small a one.
func SourceVIPAddress(podSubnet string) string { return addressIn(podSubnet, 2) }

// PodRangeStart returns the first address that pods may have: the one after kube-proxy's, which the plugin that gives
// out the pods' addresses does not know. In a subnet of which none is set aside it is the first of all.
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

// addressIn returns the address of an IPv4 subnet with this number, counted from that of the network.
func addressIn(podSubnet string, number int) string {
	subnet, err := netip.ParsePrefix(podSubnet)
	if err != nil || !subnet.Addr().Is4() || subnet.Bits() > smallestSubnet {
		return ""
	}
	address := subnet.Masked().Addr()
	for range number {
		address = address.Next()
	}
	return address.String()
}
