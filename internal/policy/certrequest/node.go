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

// Names are the names and addresses of a node.
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

// HasName reports whether a node with these names may serve under a name: in exactly the known form, or in lower
// case, as kubelets request host names. No kubelet requests any other form, such as a trailing dot or other
// capitalization.
func (s Names) HasName(name string) bool {
	return slices.ContainsFunc(s.Names, func(own string) bool { return own == name || strings.ToLower(own) == name })
}

// HasEquivalentName reports whether a name is equivalent in DNS to any of these names.
func (s Names) HasEquivalentName(name string) bool {
	name = strings.TrimSuffix(name, ".")
	return slices.ContainsFunc(s.Names, func(own string) bool { return strings.EqualFold(strings.TrimSuffix(own, "."), name) })
}

// HasAddress reports whether the node has an address.
func (s Names) HasAddress(address netip.Addr) bool { return slices.Contains(s.Addresses, address) }

// Node is a node, or another owner of names and addresses, with the operator's facts about it.
type Node struct {
	Name string
	// Foreign nodes are not managed: no request of a foreign node is approved, and no name or address of a foreign
	// node is approved for a managed node.
	Foreign bool
	// Registered reports whether a Node of this name exists and, for a managed node, belongs to this node.
	Registered bool
	// Since is the earliest possible time of a request by the node's host.
	Since time.Time
	// Assigned are the names and addresses from sources that no Windows host can change: the ConfigMap
	// windows-instances, the Machine API, the Nodes of other hosts.
	Assigned Names
	// Reached is the last address used to reach the host. The host proved possession of the address with the pinned
	// key.
	Reached Names
	// Reported are the names and addresses that only the host or its kubelet reports but the node may serve under: the
	// address that the operator chose for the Node, and additions of a cloud.
	Reported Names
	// Claimed are all other addresses that only the host reports. The node may not serve under them.
	Claimed Names
}

// AddressRank is the strength of the evidence that an address belongs to a node. If two nodes have the same address,
// only the node with the higher rank may serve under it.
type AddressRank int

const (
	// AddressUnknown means that nothing connects the address to the node.
	AddressUnknown AddressRank = iota
	// AddressReported means that only the host reports the address.
	AddressReported
	// AddressReached means that the operator reached the host at the address.
	AddressReached
	// AddressAssigned means that a source assigned the address, which no Windows host can change.
	AddressAssigned
)

// RankAddress returns the strength of the evidence that an address belongs to the node.
func (n Node) RankAddress(address netip.Addr) AddressRank {
	switch {
	case n.Assigned.HasAddress(address):
		return AddressAssigned
	case n.Reached.HasAddress(address):
		return AddressReached
	case n.Reported.HasAddress(address), n.Claimed.HasAddress(address):
		return AddressReported
	}
	return AddressUnknown
}

// CanServeAt reports whether an address may be in the node's certificate, if no other node has it.
func (n Node) CanServeAt(address netip.Addr) bool {
	return n.RankAddress(address) >= AddressReached || n.Reported.HasAddress(address)
}

// maxRegistrationLead is the maximum lead of a kubelet's serving certificate request over the creation of the Node.
const maxRegistrationLead = 5 * time.Minute

// NodeOf returns the node of an instance with a confirmed claim to a name. node is the Node of that name; nil if
// there is none.
func NodeOf(instance *v1alpha1.WindowsInstance, node *corev1.Node) Node {
	known := instanceNames(instance)
	known.Name = instance.Status.NodeRef.Name
	known.Assigned.Names = append(known.Assigned.Names, known.Name)
	if host := instance.Status.Host; host != nil {
		known.addHostNames(host)
	}
	known.Since = instance.CreationTimestamp.Time
	if node == nil || !isRegisteredBy(instance, node) {
		return known
	}
	known.Registered = true
	known.addUnrecordedIP(instance.Status.Host, node)
	// While a Node exists, no other host can claim the name. The instance may be younger than the Node if it was
	// deleted and recreated, or if the node was a legacy node. If the instance is older, the host may have received
	// the name late, but not before the instance was created.
	registered := node.CreationTimestamp.Time
	if lead := registered.Add(-maxRegistrationLead); known.Since.After(registered) || known.Since.Before(lead) {
		known.Since = lead
	}
	return known
}

// addHostNames adds the names of the host itself: the host name in the host's own case, which clouds pass to
// kubelets, and the full DNS name, which vSphere reports for its guests and kubelets then request. Both come from the
// host. Therefore they count only if the first label of the node name is the host's name: a host cannot obtain a name
// with another first label, or an address.
func (n *Node) addHostNames(host *v1alpha1.HostStatus) {
	label, _, full := strings.Cut(n.Name, ".")
	if host.Name == "" || !strings.EqualFold(label, host.Name) {
		return
	}
	switch {
	case full:
		n.Reported.Names = append(n.Reported.Names, host.Name)
	case host.Name != n.Name:
		n.Assigned.Names = append(n.Assigned.Names, host.Name)
	}
	if domain := strings.Trim(host.Domain, "."); domain != "" {
		n.Reported.Names = append(n.Reported.Names, host.Name+"."+domain)
	}
}

// addUnrecordedIP adds the internal IP address of a node that an earlier release of the operator configured: the
// status has no record of the address before the node is upgraded. The upgrade keeps this address.
func (n *Node) addUnrecordedIP(host *v1alpha1.HostStatus, node *corev1.Node) {
	if host == nil || host.NodeIP != "" {
		return
	}
	for _, address := range nodeidentity.InternalIPs(node.Status.Addresses) {
		if slices.Contains(host.Addresses, address) {
			n.Reported.Add(address)
			return
		}
	}
}

// isRegisteredBy reports whether a Node of the instance's name belongs to the host of the instance: the Node is bound
// to the instance, or the instance is not bound yet and the Node is a Windows node, which is bound next. Another
// machine may have registered a name that had no Node.
func isRegisteredBy(instance *v1alpha1.WindowsInstance, node *corev1.Node) bool {
	return nodeidentity.IsBound(instance, node) ||
		instance.Status.NodeRef.UID == "" && node.Labels[corev1.LabelOSStable] == "windows"
}

func instanceNames(instance *v1alpha1.WindowsInstance) Node {
	var known Node
	known.Assigned.Add(instance.Spec.Address)
	host := instance.Status.Host
	if host == nil {
		return known
	}
	if instance.Status.HostKey != nil {
		known.Reached.Add(host.LastReachedAddress)
	}
	for _, address := range host.Addresses {
		if address == host.NodeIP {
			known.Reported.Add(address)
		} else {
			known.Claimed.Add(address)
		}
	}
	return known
}

// addMachine adds the addresses that the Machine API reports for the node's own Machine.
func (n *Node) addMachine(machine *machinev1beta1.Machine) {
	n.Assigned.addAll(machine.Status.Addresses)
}

// foreignInstance returns an instance without a node, or with a node that is known already.
func foreignInstance(instance *v1alpha1.WindowsInstance) Node {
	other := instanceNames(instance)
	other.Name, other.Foreign = "of WindowsInstance "+instance.Name, true
	return other
}

// foreignMachine returns the host of a Machine.
func foreignMachine(machine *machinev1beta1.Machine) Node {
	other := Node{Name: "of Machine " + machine.Name, Foreign: true}
	if machine.Status.NodeRef != nil {
		other.Assigned.Add(machine.Status.NodeRef.Name)
	}
	other.addMachine(machine)
	return other
}

// foreignNode returns the owner for a Node. A kubelet may write the status of its Node: if the host is managed, that
// status is only a Windows host's own report.
func foreignNode(node *corev1.Node, ours bool) Node {
	other := Node{Name: node.Name, Foreign: true, Registered: true}
	other.Assigned.Add(node.Name)
	if ours {
		other.Reported.addAll(node.Status.Addresses)
	} else {
		other.Assigned.addAll(node.Status.Addresses)
	}
	return other
}
