package policy

import (
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Present is what there is in the cluster, as far as it has names and addresses.
type Present struct {
	Instances []v1alpha1.WindowsInstance
	Nodes     []corev1.Node
	// Machines are none where there is no Machine API.
	Machines []machinev1beta1.Machine
	// Cluster are the facts of the cluster; nil while they cannot be read.
	Cluster *nodespec.Cluster
}

// Requester is the instance whose node has made a request; nil when it is none's, and so not ours. The API server is not asked for anything
// before that is known.
func Requester(csr certificatesv1.CertificateSigningRequest, instances []v1alpha1.WindowsInstance) *v1alpha1.WindowsInstance {
	i := slices.IndexFunc(instances, func(i v1alpha1.WindowsInstance) bool { return keepsNode(&i) && AsksFor(csr, i.Status.NodeRef.Name) })
	if i < 0 {
		return nil
	}
	return &instances[i]
}

// keepsNode reports whether an instance is to be a node, or to stay one, and its claim to the name is confirmed.
func keepsNode(instance *v1alpha1.WindowsInstance) bool {
	return confirmedName(instance) != "" && instance.Spec.DesiredState != v1alpha1.DesiredStateRemoved
}

// KnowledgeOf gathers what a request is judged by: what the node of the requester is reached by, and everybody else.
func KnowledgeOf(requester *v1alpha1.WindowsInstance, present Present) Knowledge {
	known := Knowledge{Cluster: present.Cluster}
	own := confirmedName(requester)
	nodes := map[string]*corev1.Node{}
	for i := range present.Nodes {
		nodes[present.Nodes[i].Name] = &present.Nodes[i]
	}
	ours := map[string]bool{}
	for i := range present.Instances {
		instance := &present.Instances[i]
		switch {
		case keepsNode(instance):
			name := confirmedName(instance)
			node := NodeOfInstance(instance, nodes[name])
			ours[name] = node.Registered
			if instance.Name == requester.Name {
				node.addCloud(instance, nodes[name], present)
			}
			known.Nodes = append(known.Nodes, node)
		case !entryOfHost(instance, requester):
			known.Nodes = append(known.Nodes, OtherInstance(instance))
		}
	}
	for i := range present.Nodes {
		if node := &present.Nodes[i]; node.Name != own {
			known.Nodes = append(known.Nodes, OtherNode(node, ours[node.Name]))
		}
	}
	for i := range present.Machines {
		if machine := &present.Machines[i]; !machineOf(requester, machine) && !machineUnder(requester, machine) {
			known.Nodes = append(known.Nodes, OtherMachine(machine))
		}
	}
	return known
}

// addCloud adds what the cloud says that the instance's host is called: a kubelet serves under the names and addresses that the cloud gives its
// Node too, and a host cannot tell them of itself. The Machine API tells of its Machines, and a Node's own status of other hosts.
func (n *KnownNode) addCloud(instance *v1alpha1.WindowsInstance, node *corev1.Node, present Present) {
	if instance.Spec.Source.Machine == nil {
		if node != nil && present.Cluster != nil {
			n.AddCloudAddresses(node, *present.Cluster)
		}
		return
	}
	for i := range present.Machines {
		if machine := &present.Machines[i]; machineOf(instance, machine) {
			n.AddMachine(machine)
		}
	}
}

// machineOf reports whether a Machine is the one that the instance was made for, and not another one of its name.
func machineOf(instance *v1alpha1.WindowsInstance, machine *machinev1beta1.Machine) bool {
	of := instance.Spec.Source.Machine
	return of != nil && of.Namespace == machine.Namespace && of.Name == machine.Name && of.UID == machine.UID
}

// machineUnder reports whether a listed host is the virtual machine of a Machine that the operator leaves alone: one without the label of Windows,
// or with the one to be ignored. The address in the list says so, never the host.
func machineUnder(instance *v1alpha1.WindowsInstance, machine *machinev1beta1.Machine) bool {
	if instance.Spec.Source.Machine != nil ||
		machine.Labels[v1alpha1.LabelMachineOSID] == v1alpha1.MachineOSIDWindows && machine.Labels[v1alpha1.LabelIgnore] != "true" {
		return false
	}
	return slices.ContainsFunc(machine.Status.Addresses, func(a corev1.NodeAddress) bool { return strings.EqualFold(a.Address, instance.Spec.Address) })
}

// entryOfHost reports whether another instance is a second entry of the requester's host, or one from before the host moved, so that what it says
// is said of that host. One that has a node of another name is another host, whatever image both were made of.
func entryOfHost(other, requester *v1alpha1.WindowsInstance) bool {
	name := confirmedName(other)
	return SameHost(other, requester) && (name == "" || name == confirmedName(requester))
}
