package certrequest

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// ClusterIdentities lists all objects of the cluster with names and addresses.
type ClusterIdentities struct {
	Instances []v1alpha1.WindowsInstance
	Nodes     []corev1.Node
	// Machines are empty if there is no Machine API.
	Machines []machinev1beta1.Machine
	// Cluster are the facts of the cluster; nil while they cannot be read.
	Cluster *nodespec.Cluster
}

// FactsOf collects the facts for judging a request: the names and addresses of the requester's node, and of all other
// owners.
func FactsOf(requester *v1alpha1.WindowsInstance, present ClusterIdentities) Facts {
	known := Facts{Cluster: present.Cluster}
	own := nodeidentity.ConfirmedName(requester)
	nodes := map[string]*corev1.Node{}
	for i := range present.Nodes {
		nodes[present.Nodes[i].Name] = &present.Nodes[i]
	}
	ours := map[string]bool{}
	for i := range present.Instances {
		instance := &present.Instances[i]
		switch {
		case nodeidentity.ShouldKeepNode(instance):
			name := nodeidentity.ConfirmedName(instance)
			node := NodeOf(instance, nodes[name])
			ours[name] = node.Registered
			if instance.Name == requester.Name {
				node.addCloud(instance, nodes[name], present)
			}
			known.Nodes = append(known.Nodes, node)
		case !isSameHostEntry(instance, requester):
			known.Nodes = append(known.Nodes, foreignInstance(instance))
		}
	}
	for i := range present.Nodes {
		if node := &present.Nodes[i]; node.Name != own {
			known.Nodes = append(known.Nodes, foreignNode(node, ours[node.Name]))
		}
	}
	for i := range present.Machines {
		machine := &present.Machines[i]
		if !nodeidentity.IsOwnMachine(requester, machine) && !nodeidentity.IsUnmanagedMachine(requester, machine) {
			known.Nodes = append(known.Nodes, foreignMachine(machine))
		}
	}
	return known
}

// addCloud adds the names and addresses that the cloud assigns to the instance's host. A kubelet also serves under
// these names and addresses, but a host cannot report them. The source is the Machine API for Machines, and the
// status of the Node for other hosts.
func (n *Node) addCloud(instance *v1alpha1.WindowsInstance, node *corev1.Node, present ClusterIdentities) {
	if instance.Spec.Source.Machine == nil {
		if node != nil && present.Cluster != nil {
			n.AddCloudAddresses(node, *present.Cluster)
		}
		return
	}
	for i := range present.Machines {
		if machine := &present.Machines[i]; nodeidentity.IsOwnMachine(instance, machine) {
			n.addMachine(machine)
		}
	}
}

// isSameHostEntry reports whether another instance is a second entry of the requester's host, or an entry from before
// the host moved. The names and addresses of such an instance belong to the requester's host. An instance with a
// different node name is another host, even if both hosts were created from one image.
func isSameHostEntry(other, requester *v1alpha1.WindowsInstance) bool {
	name := nodeidentity.ConfirmedName(other)
	return nodeidentity.IsSameHost(other, requester) && (name == "" || name == nodeidentity.ConfirmedName(requester))
}

// Facts are the facts for judging requests of nodes.
type Facts struct {
	// Nodes are the managed nodes, and all other owners of a name or an address.
	Nodes []Node
	// Cluster are the facts of the cluster; nil while they cannot be read.
	Cluster *nodespec.Cluster
}
