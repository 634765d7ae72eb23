package nodename

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// LegacySearch holds the facts for finding the legacy Node of a listed host. The legacy operator (before version 12)
// named Nodes by other rules: on vSphere by the host's full DNS name, on GCP by the full internal DNS name of the
// instance.
type LegacySearch struct {
	Platform string
	// Address is the IP address of the operator's connection to the host.
	Address string
	// HostName is the computer name that the host reports. Expected is the name of a new Node of the host; empty if
	// unknown.
	HostName, Expected string
	// Found are the legacy Nodes of listed hosts with that address that belong to no other instance.
	Found []corev1.Node
	// Named is the Node with the expected name; nil if there is none.
	Named *corev1.Node
}

// LegacyNode returns the name of the legacy Node of a host. The name is empty if the host has no legacy Node, or if
// the facts do not suffice for a decision, so that the host gets no name. An address alone is no proof: a lease may
// have passed to this host from a host that is off, and a kubelet may write any address to its own Node. Therefore
// the Node must be the only Node with the address, and have the name of the host, which no kubelet can change. Grant
// then compares the host keys.
func LegacyNode(search LegacySearch) (name string, decision policy.Decision) {
	if len(search.Found) == 0 || IsNamedByCloud(search.Platform) && search.Expected == "" {
		return "", policy.Decision{Allowed: true}
	}
	decision = policy.Decide(search, "The host has the legacy Node "+search.Found[0].Name+".", []policy.Check[LegacySearch]{
		{Name: "LegacyNodeAmbiguous", Reason: v1alpha1.ReasonNameConflict, Violation: func(s LegacySearch) string {
			return severalLegacyNodes(s.Found, s.Address)
		}},
		{Name: "SecondLegacyNode", Reason: v1alpha1.ReasonNameConflict, Violation: secondLegacyNode},
		{Name: "LegacyHostMismatch", Reason: v1alpha1.ReasonNameConflict, Violation: legacyHostMismatch},
	})
	if !decision.Allowed {
		return "", decision
	}
	return search.Found[0].Name, decision
}

// OneLegacyNode decides whether at most one legacy Node has the address of a host.
func OneLegacyNode(found []corev1.Node, address string) policy.Decision {
	if message := severalLegacyNodes(found, address); message != "" {
		return policy.Decision{Check: "LegacyNodeAmbiguous", Reason: v1alpha1.ReasonNameConflict, Message: message}
	}
	return policy.Decision{Allowed: true}
}

// OfFormerEntry returns the node name of another instance under which the host was listed before; empty if there is
// none. Machines created from one image may share the host key and machine ID, but have different computer names. An
// instance does not count if its address now leads to a machine other than the machine of its Node.
func OfFormerEntry(instance *v1alpha1.WindowsInstance, others []v1alpha1.WindowsInstance) string {
	for i := range others {
		if other := &others[i]; other.Name != instance.Name && nodeidentity.ConfirmedName(other) != "" &&
			nodeidentity.IsSameHost(instance, other) && !nodeidentity.HasOtherMachine(other) && hasSameComputerName(instance, other) {
			return nodeidentity.ConfirmedName(other)
		}
	}
	return ""
}

// maxNamedNodes is the maximum number of Nodes named in a message.
const maxNamedNodes = 5

func severalLegacyNodes(found []corev1.Node, address string) string {
	if len(found) < 2 {
		return ""
	}
	var names []string
	for i := range found {
		names = append(names, found[i].Name)
	}
	slices.Sort(names)
	if more := len(names) - maxNamedNodes; more > 0 {
		names = append(names[:maxNamedNodes], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("Nodes %s of the legacy operator (before version 12) all have the address %s of this host. Only one of these Nodes can belong to the host.",
		policy.Enumerate(names), address)
}

// secondLegacyNode describes a second Node that may belong to the host: a Node with the expected name of the host, at
// another address.
func secondLegacyNode(s LegacySearch) string {
	if s.Named == nil || s.Named.Name == s.Found[0].Name ||
		!IsLegacyOfListed(s.Named) && (s.Named.Annotations[v1alpha1.AnnotationInstance] != "" || !isJoining(s.Named)) {
		return ""
	}
	return fmt.Sprintf("Node %s of the legacy operator (before version 12) has the address %s of this host, and Node %s has the name of this host. Only one of these Nodes can belong to the host.",
		s.Found[0].Name, s.Address, s.Named.Name)
}

// legacyHostMismatch describes a host that is not the host of the Node, or was renamed since.
func legacyHostMismatch(s LegacySearch) string {
	node := &s.Found[0]
	if hasSameFirstLabel(node.Name, s.Expected) || IsNamedAfter(node.Name, s.HostName) {
		return ""
	}
	return fmt.Sprintf("Node %s of the legacy operator (before version 12) has the address %s of this host, but the host is named %.100q, which would be Node %q.",
		node.Name, s.Address, s.HostName, s.Expected)
}

// IsLegacyOfListed reports whether a legacy operator configured the Node from its list of hosts, and no instance has
// the Node.
func IsLegacyOfListed(node *corev1.Node) bool {
	return nodeidentity.IsLegacyNode(node) && node.Labels[v1alpha1.LabelBYOH] == "true"
}

// HasInternalIP reports whether the Node has an internal IP address.
func HasInternalIP(node *corev1.Node, address string) bool {
	return address != "" && slices.Contains(nodeidentity.InternalIPs(node.Status.Addresses), address)
}

// maxNetBIOSName is the maximum length of a NetBIOS computer name. Source: Microsoft, "Naming conventions in
// Active Directory for computers, domains, sites, and OUs".
const maxNetBIOSName = 15

// IsNamedAfter reports whether a node name is a host name, or a DNS name of the host in any domain. A name longer than
// 15 characters may be truncated, as in NetBIOS.
func IsNamedAfter(nodeName, hostName string) bool {
	if hostName == "" {
		return false
	}
	label := firstLabel(nodeName)
	return strings.EqualFold(label, hostName) ||
		len(hostName) > maxNetBIOSName && strings.EqualFold(label, hostName[:maxNetBIOSName])
}

func hasSameFirstLabel(a, b string) bool {
	return a != "" && strings.EqualFold(firstLabel(a), firstLabel(b))
}

func firstLabel(name string) string {
	label, _, _ := strings.Cut(name, ".")
	return label
}
