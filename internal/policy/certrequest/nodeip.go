package certrequest

import (
	"net/netip"
	"slices"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// NodeIPChoice are the facts that decide which of a host's addresses becomes the internal IP address of the Node.
type NodeIPChoice struct {
	// Known are the current addresses of the Node, the most trusted first. A change of the address disrupts a node in
	// service: the kubelet restarts, and the serving certificate is issued again.
	Known []string
	// Reached is the address used by the operator to reach the host.
	Reached string
	// Reported are the addresses that the host reports, starting with the address of the default route. Windows may
	// reorder the addresses at each boot.
	Reported []string
}

// ChooseNodeIP returns the internal IP address of a node. It prefers the current address as long as the host has it,
// then the address that the operator reached. Otherwise it returns the first address that can belong to a host, or
// the first reported address if none can. The result is "" if the host reports no address.
func ChooseNodeIP(choice NodeIPChoice, cluster nodespec.Cluster) string {
	for _, preferred := range append(slices.Clone(choice.Known), choice.Reached) {
		if preferred != "" && slices.Contains(choice.Reported, preferred) {
			return preferred
		}
	}
	first := ""
	for _, reported := range choice.Reported {
		address, err := netip.ParseAddr(reported)
		if err == nil && nodename.NoHostAt(address, cluster) == "" {
			return reported
		}
		if first == "" {
			first = reported
		}
	}
	return first
}
