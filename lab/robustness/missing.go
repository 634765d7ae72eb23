package robustness

import (
	"fmt"
	"slices"
	"strings"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// DesiredState is the desired state at the end.
type DesiredState struct {
	// Listed and Unlisted are the hosts.
	Listed, Unlisted []DesiredHost
	// Machines is the desired number of Machines.
	Machines int
	// Version is the operator's version, and KeyHash the hash of the SSH key.
	Version, KeyHash string
}

// DesiredHost is a host by the names of its Node and its entry.
type DesiredHost struct {
	Node, Address string
	// Cordoned is the UID of the Node that the user has cordoned: another Node of the same name is schedulable.
	Cordoned types.UID
	// Impostor is true for a host that has the name of another host's Node.
	Impostor bool
}

// CurrentState is the state of the API server at the end.
type CurrentState struct {
	Nodes     []corev1.Node
	Machines  []machinev1.Machine
	Instances []v1alpha1.WindowsInstance
	Requests  []certificatesv1.CertificateSigningRequest
	Policy    v1alpha1.WindowsDisruptionPolicy
}

// desiredState returns the desired state of the model.
func (l *lab) desiredState() DesiredState {
	w := DesiredState{Machines: l.model.Machines, Version: l.desiredRelease().Version, KeyHash: l.KeyHash()}
	for _, h := range l.Hosts() {
		address, _ := h.Entry()
		host := DesiredHost{Node: h.NodeName(), Address: address, Cordoned: l.hosts[h.Options.Name].cordoned,
			Impostor: h.Options.Name == l.shape.Impostor}
		if l.model.Listed[h.Options.Name] {
			w.Listed = append(w.Listed, host)
		} else {
			w.Unlisted = append(w.Unlisted, host)
		}
	}
	return w
}

// Missing compares the current state with the desired one, and describes the differences.
func Missing(w DesiredState, t CurrentState) (missing []string) {
	for _, host := range w.Listed {
		i := slices.IndexFunc(t.Instances, func(i v1alpha1.WindowsInstance) bool { return i.Spec.Address == host.Address })
		if i < 0 {
			missing = append(missing, host.Address+" is listed, and has no instance")
			continue
		}
		if host.Impostor {
			if t.Instances[i].Status.Summary != v1alpha1.ReasonNameConflict {
				missing = append(missing, host.Address+" has the name of another's Node, and does not say so: "+testenv.Explain(&t.Instances[i]))
			}
			continue
		}
		missing = append(missing, instanceDifferences(&t.Instances[i])...)
		missing = append(missing, w.nodeDifferences(host, t.Nodes)...)
	}
	for _, host := range w.Unlisted {
		for i := range t.Instances {
			if t.Instances[i].Spec.Address == host.Address {
				missing = append(missing, host.Address+" is not listed, and has an instance: "+testenv.Explain(&t.Instances[i]))
			}
		}
		for i := range t.Nodes {
			if t.Nodes[i].Name == host.Node && !host.Impostor {
				missing = append(missing, "Node "+host.Node+" is there, and its host is not listed")
			}
		}
	}
	for i := range t.Instances {
		address := t.Instances[i].Spec.Address
		if t.Instances[i].Spec.Source.Machine == nil && !slices.ContainsFunc(slices.Concat(w.Listed, w.Unlisted),
			func(h DesiredHost) bool { return h.Address == address }) {
			missing = append(missing, "nobody has asked for instance "+t.Instances[i].Name)
		}
	}
	missing = append(missing, w.machineDifferences(t)...)
	for _, d := range t.Policy.Status.Disruptions {
		missing = append(missing, fmt.Sprintf("the policy says that %s is disturbed (%s)", d.Instance, d.Cause))
	}
	return append(missing, leftRequests(t.Requests)...)
}

// machineDifferences checks the Machines of the MachineSet. Each has an instance of the same name.
func (w DesiredState) machineDifferences(t CurrentState) (missing []string) {
	if len(t.Machines) != w.Machines {
		missing = append(missing, fmt.Sprintf("there are %d Machines, want %d", len(t.Machines), w.Machines))
	}
	for i := range t.Instances {
		machine := t.Instances[i].Spec.Source.Machine
		if machine != nil && !slices.ContainsFunc(t.Machines, func(m machinev1.Machine) bool { return m.UID == machine.UID }) {
			missing = append(missing, "the Machine of instance "+t.Instances[i].Name+" is gone")
		}
	}
	for i := range t.Machines {
		m := &t.Machines[i]
		at := slices.IndexFunc(t.Instances, func(i v1alpha1.WindowsInstance) bool { return i.Name == m.Name })
		if m.DeletionTimestamp != nil || m.Status.NodeRef == nil || at < 0 {
			missing = append(missing, "Machine "+m.Name+" has no node, or is being deleted")
			continue
		}
		missing = append(missing, instanceDifferences(&t.Instances[at])...)
		missing = append(missing, w.nodeDifferences(DesiredHost{Node: m.Status.NodeRef.Name, Address: m.Name}, t.Nodes)...)
	}
	return missing
}

func instanceDifferences(instance *v1alpha1.WindowsInstance) (missing []string) {
	switch {
	case !testenv.IsReady(instance):
		missing = append(missing, instance.Spec.Address+" is not Ready: "+testenv.Explain(instance))
	case !meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha1.ConditionUpToDate):
		missing = append(missing, instance.Spec.Address+" is not up to date: "+testenv.Explain(instance))
	case instance.Status.Step != nil:
		missing = append(missing, instance.Spec.Address+" is Ready, and has a step in progress: "+testenv.Explain(instance))
	}
	if instance.Spec.DesiredState != v1alpha1.DesiredStateNode {
		missing = append(missing, fmt.Sprintf("%s is listed, and is to be %s", instance.Spec.Address, instance.Spec.DesiredState))
	}
	return missing
}

// nodeDifferences checks the Node of a listed host.
func (w DesiredState) nodeDifferences(host DesiredHost, nodes []corev1.Node) (missing []string) {
	i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == host.Node })
	if i < 0 {
		return []string{host.Address + " is listed, and has no Node " + host.Node}
	}
	node := &nodes[i]
	lack := func(format string, arguments ...any) {
		missing = append(missing, "Node "+node.Name+" "+fmt.Sprintf(format, arguments...))
	}
	if got := node.Annotations[v1alpha1.AnnotationVersion]; got != w.Version {
		lack("has version %q, want %q", got, w.Version)
	}
	if node.Annotations[v1alpha1.AnnotationPubKeyHash] != w.KeyHash {
		lack("has another SSH key")
	}
	if desired := host.Cordoned != "" && node.UID == host.Cordoned; node.Spec.Unschedulable != desired {
		lack("has unschedulable %t, and the user wants %t", node.Spec.Unschedulable, desired)
	}
	for _, annotation := range []string{v1alpha1.AnnotationCordoned, v1alpha1.AnnotationDrained, v1alpha1.AnnotationRebootRequired} {
		if value, found := node.Annotations[annotation]; found {
			lack("has annotation %s=%s", annotation, value)
		}
	}
	if !isInService(node) {
		lack("is not in service: %v, %v", node.Spec.Taints, node.Status.Conditions)
	}
	return missing
}

// leftRequests returns the operator's own certificate requests that are still pending although no longer needed.
func leftRequests(requests []certificatesv1.CertificateSigningRequest) (left []string) {
	for _, r := range requests {
		if strings.HasPrefix(r.Name, "wmco-") && len(r.Status.Conditions) == 0 {
			left = append(left, "CertificateSigningRequest "+r.Name+" is pending")
		}
	}
	return left
}
