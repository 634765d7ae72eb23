package certrequest

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Present lists everything in the cluster with names and addresses.
type Present struct {
	Instances []v1alpha1.WindowsInstance
	Nodes     []corev1.Node
	// Machines are none where there is no Machine API.
	Machines []machinev1beta1.Machine
	// Cluster are the facts of the cluster; nil while they cannot be read.
	Cluster *nodespec.Cluster
}

// FactsOf gathers the facts to judge a request by: the names and addresses of the requester's node, and those of all others.
func FactsOf(requester *v1alpha1.WindowsInstance, present Present) Facts {
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
		case nodeidentity.KeepsNode(instance):
			name := nodeidentity.ConfirmedName(instance)
			node := NodeOf(instance, nodes[name])
			ours[name] = node.Registered
			if instance.Name == requester.Name {
				node.addCloud(instance, nodes[name], present)
			}
			known.Nodes = append(known.Nodes, node)
		case !entryOfHost(instance, requester):
			known.Nodes = append(known.Nodes, otherInstance(instance))
		}
	}
	for i := range present.Nodes {
		if node := &present.Nodes[i]; node.Name != own {
			known.Nodes = append(known.Nodes, otherNode(node, ours[node.Name]))
		}
	}
	for i := range present.Machines {
		machine := &present.Machines[i]
		if !nodeidentity.OwnMachine(requester, machine) && !nodeidentity.MachineUnder(requester, machine) {
			known.Nodes = append(known.Nodes, otherMachine(machine))
		}
	}
	return known
}

// addCloud adds what the cloud says that the instance's host is called: a kubelet serves under the names and addresses
// that the cloud gives its Node too, and a host cannot tell them of itself. The Machine API tells of its Machines, and
// a Node's own status of other hosts.
func (n *Node) addCloud(instance *v1alpha1.WindowsInstance, node *corev1.Node, present Present) {
	if instance.Spec.Source.Machine == nil {
		if node != nil && present.Cluster != nil {
			n.AddCloudAddresses(node, *present.Cluster)
		}
		return
	}
	for i := range present.Machines {
		if machine := &present.Machines[i]; nodeidentity.OwnMachine(instance, machine) {
			n.addMachine(machine)
		}
	}
}

// entryOfHost reports whether another instance is a second entry of the requester's host, or one from before the host
// moved, so that what it says is said of that host. One that has a node of another name is another host, whatever image
// both were made of.
func entryOfHost(other, requester *v1alpha1.WindowsInstance) bool {
	name := nodeidentity.ConfirmedName(other)
	return nodeidentity.SameHost(other, requester) && (name == "" || name == nodeidentity.ConfirmedName(requester))
}

// Facts are the facts to judge requests of nodes by.
type Facts struct {
	// Nodes are the nodes of ours, and everybody else who has a name or an address.
	Nodes []Node
	// Cluster are the facts of the cluster; nil while they cannot be read.
	Cluster *nodespec.Cluster
}
