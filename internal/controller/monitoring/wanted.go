package monitoring

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// address is the IP address of a node for scraping its exporter.
type address struct {
	node string
	uid  types.UID
	ip   string
}

// unreachable is a node in service that Prometheus cannot scrape, and the reason.
type unreachable struct {
	node    *corev1.Node
	message string
}

// desiredAddresses returns the addresses of all nodes in service, sorted by the name of the node, and the nodes in
// service without an address of their own.
//
// The readiness of a node is irrelevant: a restarting node keeps its address, and Prometheus shows the outage
// of the exporter.
func desiredAddresses(nodes []corev1.Node, instances []v1alpha1.WindowsInstance) (addresses []address, without []unreachable) {
	leaving := leavingNodes(instances)
	ordered := make([]*corev1.Node, 0, len(nodes))
	for i := range nodes {
		if isInService(&nodes[i]) && !leaving.isLeaving(&nodes[i]) {
			ordered = append(ordered, &nodes[i])
		}
	}
	// If two Nodes report the same address, the older Node keeps it: a new host cannot displace an existing host.
	slices.SortFunc(ordered, func(a, b *corev1.Node) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	holders := make(map[string]string, len(ordered))
	for _, node := range ordered {
		ip := internalIPv4(node)
		switch holder, taken := holders[ip]; {
		case ip == "":
			without = append(without, unreachable{node, "it reports no usable IPv4 address of type InternalIP"})
		case taken:
			without = append(without, unreachable{node, "Node " + holder + ", which is older, has its address " + ip})
		default:
			holders[ip] = node.Name
			addresses = append(addresses, address{node: node.Name, uid: node.UID, ip: ip})
		}
	}
	slices.SortFunc(addresses, func(a, b address) int { return cmp.Compare(a.node, b.node) })
	return addresses, without
}

// isInService reports whether the operator or a legacy operator has configured and verified the node. The version
// is written when the start-up taint is removed, and remains during an upgrade.
func isInService(node *corev1.Node) bool {
	if !node.DeletionTimestamp.IsZero() || nodeidentity.HasStartupTaint(node) {
		return false
	}
	_, takenOver := node.Annotations[v1alpha1.AnnotationTakenOverFrom]
	return takenOver || node.Annotations[v1alpha1.AnnotationVersion] != "" || nodeidentity.IsLegacyNode(node)
}

// departure is the time of removing the address of a node whose instance leaves the cluster.
type departure int

const (
	stays departure = iota
	// afterDrain is for a listed host: its node runs pods until a disruption slot is acquired and the drain is
	// complete.
	afterDrain
	// atOnce is for the host of a Machine, which the Machine API drains and deletes. R-138
	atOnce
)

// departures holds the departures of Nodes by name, and of instances. A Node claimed by two instances leaves
// with the later instance.
type departures struct {
	nodes, instances map[string]departure
}

func leavingNodes(instances []v1alpha1.WindowsInstance) departures {
	d := departures{nodes: map[string]departure{}, instances: make(map[string]departure, len(instances))}
	for i := range instances {
		goes := departureOf(&instances[i])
		d.instances[instances[i].Name] = goes
		if name := nodeidentity.ConfirmedName(&instances[i]); name != "" {
			if other, claimed := d.nodes[name]; claimed {
				goes = min(goes, other)
			}
			d.nodes[name] = goes
		}
	}
	return d
}

// isLeaving reports whether the node leaves. The claims of instances override the annotation of the Node, because the
// kubelet can write the annotation.
func (d departures) isLeaving(node *corev1.Node) bool {
	goes, claimed := d.nodes[node.Name]
	if !claimed {
		goes = d.instances[node.Annotations[v1alpha1.AnnotationInstance]]
	}
	return goes == atOnce || goes == afterDrain && isDrained(node)
}

// isDrained reports whether the drain of a node is complete. The operator records a drain only on nodes that the
// operator itself cordoned: a node cordoned by an administrator before its removal is usually drained.
func isDrained(node *corev1.Node) bool {
	_, byOperator := node.Annotations[v1alpha1.AnnotationCordoned]
	return nodeidentity.IsDrained(node) || node.Spec.Unschedulable && !byOperator
}

// departureOf returns when the address of the instance's node is removed: if the host is removed, or if its Machine
// is being deleted or has failed. A host that is unmanaged for another reason remains a node.
func departureOf(instance *v1alpha1.WindowsInstance) departure {
	switch instance.Spec.DesiredState {
	case v1alpha1.DesiredStateRemoved:
		if instance.Spec.Source.Machine == nil {
			return afterDrain
		}
		return atOnce
	case v1alpha1.DesiredStateUnmanaged:
		reason := instance.Spec.DesiredStateReason
		if reason == v1alpha1.ReasonMachineDeleting || reason == v1alpha1.ReasonMachineFailed {
			return atOnce
		}
	}
	return stays
}

// internalIPv4 returns the first address of a Node that is valid in an EndpointSlice; "" if none is valid. The
// API server rejects a complete slice for one invalid address.
func internalIPv4(node *corev1.Node) string {
	for _, reported := range node.Status.Addresses {
		if reported.Type != corev1.NodeInternalIP {
			continue
		}
		ip, err := netip.ParseAddr(reported.Address)
		if err == nil && ip.Is4() && !ip.IsUnspecified() && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() &&
			!ip.IsMulticast() {
			return ip.String()
		}
	}
	return ""
}
