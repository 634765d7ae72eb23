package certrequest

import (
	"net/netip"
	"slices"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// NodeIPChoice are the facts that decide which of a host's addresses becomes the internal IP address of its Node.
type NodeIPChoice struct {
	// Known are the addresses of the Node at present, the most trusted first. A change of the address disrupts a node in
	// service: its kubelet restarts, and its serving certificate is issued again.
	Known []string
	// Reached is the address at which the operator reached the host.
	Reached string
	// Reported are the addresses that the host reports, that of its default route first. Windows may reorder them at each
	// boot.
	Reported []string
}

// ChooseNodeIP returns the internal IP address of a node: the present one as long as the host has it, for a new node the
// one that the operator reached, and otherwise the first that can belong to a host. It is empty if the host reports no
// address.
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
