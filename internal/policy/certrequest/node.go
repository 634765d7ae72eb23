package certrequest

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Names are names and addresses by which a node is reached.
type Names struct {
	Names     []string
	Addresses []netip.Addr
}

// Add adds a DNS name or an address.
func (s *Names) Add(text string) {
	if address, err := netip.ParseAddr(text); err == nil {
		s.Addresses = append(s.Addresses, address.Unmap().WithZone(""))
	} else if text != "" {
		s.Names = append(s.Names, text)
	}
}

func (s *Names) addAll(addresses []corev1.NodeAddress) {
	for _, address := range addresses {
		s.Add(address.Address)
	}
}

// HoldsName reports whether a node with these names may serve under a name: exactly as it is known, or in lower case,
// as kubelets request host names. No kubelet requests any other form, such as one with a final dot or in other
// capitals.
func (s Names) HoldsName(name string) bool {
	return slices.ContainsFunc(s.Names, func(own string) bool { return own == name || strings.ToLower(own) == name })
}

// TakesName reports whether a name is one of these in any form that DNS takes for the same.
func (s Names) TakesName(name string) bool {
	name = strings.TrimSuffix(name, ".")
	return slices.ContainsFunc(s.Names, func(own string) bool { return strings.EqualFold(strings.TrimSuffix(own, "."), name) })
}

// HoldsAddress reports whether an address is one of the node's.
func (s Names) HoldsAddress(address netip.Addr) bool { return slices.Contains(s.Addresses, address) }

// Node is a node, or anything else with names and addresses, and the operator's knowledge of it.
type Node struct {
	Name string
	// Foreign nodes are not ours: nothing is approved for them, and nothing of theirs for ours.
	Foreign bool
	// Registered reports whether there is a Node of this name, and for one of ours, whether it is this node.
	Registered bool
	// Since is the time before which no request was made by the node's host.
	Since time.Time
	// Given are the names and addresses from sources that no Windows host can change: the ConfigMap windows-instances, the
	// Machine API, the Nodes of others.
	Given Names
	// Reached is the address at which the operator reached the host last. The host proved with its pinned key that it has
	// this address.
	Reached Names
	// Told are the names and addresses that only the host or its kubelet reports, and that the node may serve under: the
	// address that the operator chose for the Node, and what a cloud adds.
	Told Names
	// Claimed are all other addresses that only the host reports. The node may not serve under them.
	Claimed Names
}

// AddressRank says how well an address is proven to be a node's. FactsOf two nodes with one address, only the one with the
// higher rank may serve under it.
type AddressRank int

const (
	// AddressUnknown means that nothing connects the address to the node.
	AddressUnknown AddressRank = iota
	// AddressReported means that only the host reports the address.
	AddressReported
	// AddressReached means that the operator reached the host at the address.
	AddressReached
	// AddressGiven means that a source assigned the address, which no Windows host can change.
	AddressGiven
)

// RankAddress returns how well an address is proven to be the node's.
func (n Node) RankAddress(address netip.Addr) AddressRank {
	switch {
	case n.Given.HoldsAddress(address):
		return AddressGiven
	case n.Reached.HoldsAddress(address):
		return AddressReached
	case n.Told.HoldsAddress(address), n.Claimed.HoldsAddress(address):
		return AddressReported
	}
	return AddressUnknown
}

// MayServeAt reports whether an address may be in the node's certificate, if no other node has it.
func (n Node) MayServeAt(address netip.Addr) bool {
	return n.RankAddress(address) >= AddressReached || n.Told.HoldsAddress(address)
}

// registrationLead is how long before its Node is there a kubelet may have asked for its serving certificate.
const registrationLead = 5 * time.Minute

// NodeOf returns the node of an instance whose claim to its name is confirmed. node is the Node of that name; nil when
// there is none.
func NodeOf(instance *v1alpha1.WindowsInstance, node *corev1.Node) Node {
	known := instanceNames(instance)
	known.Name = instance.Status.NodeRef.Name
	known.Given.Names = append(known.Given.Names, known.Name)
	if host := instance.Status.Host; host != nil {
		known.addHostNames(host)
	}
	known.Since = instance.CreationTimestamp.Time
	if node == nil || !registeredBy(instance, node) {
		return known
	}
	known.Registered = true
	known.addUnrecordedIP(instance.Status.Host, node)
	// As long as there is a Node, its name is one host's: no other claims it. The instance may be younger, if it was
	// deleted and made again or the node was an older operator's. If it is older, the host may have got the name late, but
	// not before the instance was made.
	registered := node.CreationTimestamp.Time
	if lead := registered.Add(-registrationLead); known.Since.After(registered) || known.Since.Before(lead) {
		known.Since = lead
	}
	return known
}

// addHostNames adds the names of the host itself: the host name in the host's own case, which clouds tell kubelets, and
// the full DNS name, by which vSphere knows its guests and kubelets then request serving certificates. A host reports
// both, so they count only where the node has the host's name, with or without a domain: whatever the host reports, it
// gets no name that begins with another label than its node's, and no address.
func (n *Node) addHostNames(host *v1alpha1.HostStatus) {
	label, _, full := strings.Cut(n.Name, ".")
	if host.Name == "" || !strings.EqualFold(label, host.Name) {
		return
	}
	switch {
	case full:
		n.Told.Names = append(n.Told.Names, host.Name)
	case host.Name != n.Name:
		n.Given.Names = append(n.Given.Names, host.Name)
	}
	if domain := strings.Trim(host.Domain, "."); domain != "" {
		n.Told.Names = append(n.Told.Names, host.Name+"."+domain)
	}
}

// addUnrecordedIP adds the internal IP address of a node that an earlier release of the operator configured: the status
// has no record of it before the node is upgraded. The operator keeps the same address for the node then.
func (n *Node) addUnrecordedIP(host *v1alpha1.HostStatus, node *corev1.Node) {
	if host == nil || host.NodeIP != "" {
		return
	}
	for _, address := range nodeidentity.InternalIPs(node.Status.Addresses) {
		if slices.Contains(host.Addresses, address) {
			n.Told.Add(address)
			return
		}
	}
}

// registeredBy reports whether a Node of the instance's name belongs to its host: the one that it was bound to, or as
// long as it was bound to none, a Windows node, which is bound next. Another machine may have come by a name that no
// Node had.
func registeredBy(instance *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	return nodeidentity.Bound(instance, node) ||
		instance.Status.NodeRef.UID == "" && node.Labels[corev1.LabelOSStable] == "windows"
}

func instanceNames(instance *v1alpha1.WindowsInstance) Node {
	var known Node
	known.Given.Add(instance.Spec.Address)
	host := instance.Status.Host
	if host == nil {
		return known
	}
	if instance.Status.HostKey != nil {
		known.Reached.Add(host.LastReachedAddress)
	}
	for _, address := range host.Addresses {
		if address == host.NodeIP {
			known.Told.Add(address)
		} else {
			known.Claimed.Add(address)
		}
	}
	return known
}

// AddMachine adds what the Machine API says of the node's own Machine.
func (n *Node) addMachine(machine *machinev1beta1.Machine) {
	n.Given.addAll(machine.Status.Addresses)
}

// otherInstance returns an instance that has no node, or whose node is known already.
func otherInstance(instance *v1alpha1.WindowsInstance) Node {
	other := instanceNames(instance)
	other.Name, other.Foreign = "of WindowsInstance "+instance.Name, true
	return other
}

// otherMachine returns the host of a Machine.
func otherMachine(machine *machinev1beta1.Machine) Node {
	other := Node{Name: "of Machine " + machine.Name, Foreign: true}
	if machine.Status.NodeRef != nil {
		other.Given.Add(machine.Status.NodeRef.Name)
	}
	other.addMachine(machine)
	return other
}

// otherNode returns a Node. A kubelet may write the status of its own: where its host is one of ours, that is what a
// Windows host says of itself.
func otherNode(node *corev1.Node, ours bool) Node {
	other := Node{Name: node.Name, Foreign: true, Registered: true}
	other.Given.Add(node.Name)
	if ours {
		other.Told.addAll(node.Status.Addresses)
	} else {
		other.Given.addAll(node.Status.Addresses)
	}
	return other
}
