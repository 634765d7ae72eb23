// Package nodename decides which name the node of a host has, whether an instance may have that name, and which names and
// addresses belong to the cluster itself. It never relies on a host's report about names of others.
package nodename

import (
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Claim is an instance that wants a node name.
type Claim struct {
	Instance v1alpha1.WindowsInstance
	NodeName string
	// Node is the Node of that name; nil when there is none.
	Node *corev1.Node
	// Others are all WindowsInstances, the claimant among them or not.
	Others []v1alpha1.WindowsInstance
	// Machines are all Machines of the cluster, the claimant's own among them or not; none where there is no Machine API.
	Machines []machinev1beta1.Machine
	// Cluster are the facts of the cluster.
	Cluster nodespec.Cluster
	// Older proves that a Node that an operator before version 12 has configured belongs to the claimant's host.
	Older OlderProof
	// Now is the operator's time.
	Now time.Time
}

// claimLimit is how long a claim counts that is not confirmed. The operator confirms or withdraws a claim right after
// it has written it, unless it is killed in between. Then the host may be gone for good, and nobody comes back to the
// claim.
const claimLimit = 10 * time.Minute

// Stake returns the claim of an instance to a name, and whether it must be written before it is checked. A claim that
// waits is written again in time: it must not run out for others while it is being checked.
func Stake(present *v1alpha1.NodeReference, name string, now time.Time) (claim *v1alpha1.NodeReference, write bool) {
	claim = &v1alpha1.NodeReference{Name: name, ClaimedAt: ptr.To(metav1.NewTime(now))}
	if present == nil || present.Name != name {
		return claim, true
	}
	if present.Confirmed || present.ClaimedAt != nil && now.Sub(present.ClaimedAt.Time) < claimLimit/2 {
		return present, false
	}
	claim.UID = present.UID
	return claim, true
}

// abandoned reports whether nobody is about to confirm or withdraw a claim that is not confirmed. One without a time is
// from a former version of the operator.
func (c Claim) abandoned(other *v1alpha1.WindowsInstance) bool {
	claimed := other.Status.NodeRef.ClaimedAt
	return other.Spec.Paused || other.Spec.DesiredState == v1alpha1.DesiredStateRemoved ||
		other.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged ||
		claimed == nil || c.Now.Sub(claimed.Time) >= claimLimit
}

// Grant decides whether the instance may have the node name: it must be free, or bound to this very instance already,
// or the name of this very host's Node from the time of an operator before version 12. An instance with a confirmed
// claim keeps the name. Of two instances whose claims are not confirmed the younger withdraws, and the older waits
// until it has: the younger may have looked before the older's claim was written. It does not wait for a claim that
// nobody will confirm or withdraw. Reason Waiting means to look again soon.
//
// The names by which the cluster itself is reached are nobody's: the kubelet of a node serves under the node's name.
//
// The names of Machines belong to their hosts, even before these are nodes: the first host that asks for such a name
// may be the wrong one.
//
// An instance of the same host is a rival under any name: if the source names hosts, two instances of one host have
// different names.
func Grant(claim Claim) policy.Decision {
	if whose := ReservedName(claim.NodeName, &claim.Cluster); whose != "" {
		return policy.Decision{
			Check: "ClusterName", Reason: v1alpha1.ReasonNameConflict,
			Message: fmt.Sprintf("The host would become node %s, which is %s. No certificate is issued for a name that belongs to another endpoint.",
				claim.NodeName, whose),
		}
	}
	for i := range claim.Others {
		other := &claim.Others[i]
		if other.Name == claim.Instance.Name || other.Status.NodeRef == nil || !rivals(claim, other) {
			continue
		}
		if decision := againstInstance(claim, other); !decision.Allowed {
			return decision
		}
	}
	if decision := againstMachines(claim); !decision.Allowed {
		return decision
	}
	return againstNode(claim)
}

// againstMachines refuses a name that the host of a Machine has or will have, unless it is the claimant's own.
func againstMachines(claim Claim) policy.Decision {
	for i := range claim.Machines {
		machine := &claim.Machines[i]
		if nodeidentity.OwnMachine(&claim.Instance, machine) || nodeidentity.MachineUnder(&claim.Instance, machine) {
			continue
		}
		if slices.ContainsFunc(machineNames(machine), func(name string) bool {
			return strings.EqualFold(name, claim.NodeName)
		}) || strings.EqualFold(machine.Name, firstLabel(claim.NodeName)) {
			return policy.Decision{
				Check: "OtherMachine", Reason: v1alpha1.ReasonNameConflict,
				Message: fmt.Sprintf("The host would become node %s, which is a name of Machine %s/%s. No certificate is issued for a name that belongs to another.",
					claim.NodeName, machine.Namespace, machine.Name),
			}
		}
	}
	return policy.Decision{Allowed: true}
}

// machineNames returns the possible names of the Machine's Node. Before its addresses are known that is its own name,
// which most platforms give to the machine; on vSphere the Node may have it with any domain.
func machineNames(machine *machinev1beta1.Machine) []string {
	names := append(dnsNames(machine.Status.Addresses), machine.Name)
	if machine.Status.NodeRef != nil {
		names = append(names, machine.Status.NodeRef.Name)
	}
	return names
}

// dnsNames returns the names in a cloud's own network among the addresses of a Machine.
func dnsNames(addresses []corev1.NodeAddress) []string {
	var names []string
	for _, address := range addresses {
		if address.Type == corev1.NodeInternalDNS || address.Type == corev1.NodeHostName {
			names = append(names, strings.ToLower(address.Address))
		}
	}
	return names
}

// rivals reports whether another instance claims the same name, or has the same computer name, or the same host under
// whatever name.
func rivals(claim Claim, other *v1alpha1.WindowsInstance) bool {
	return other.Status.NodeRef.Name == claim.NodeName ||
		nodeidentity.SameHost(&claim.Instance, other) && nodeidentity.ShareAddress(&claim.Instance, other) ||
		sameComputerName(&claim.Instance, other)
}

func againstInstance(claim Claim, other *v1alpha1.WindowsInstance) policy.Decision {
	same := nodeidentity.SameHost(&claim.Instance, other)
	if same && other.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
		// The host moved to a new address: its new entry takes it over from the old one.
		return policy.Decision{Allowed: true}
	}
	if !other.Status.NodeRef.Confirmed && older(&claim.Instance, other) {
		if claim.abandoned(other) {
			return policy.Decision{Allowed: true}
		}
		return policy.Decision{
			Check: "OtherClaim", Reason: v1alpha1.ReasonWaiting, Passes: true,
			Message: fmt.Sprintf("WindowsInstance %s (%s) also claims the node name or the host of this one, and must withdraw within %s.",
				other.Name, other.Spec.Address, policy.ShortDuration(claimLimit)),
		}
	}
	if same {
		return duplicate(other)
	}
	if other.Status.NodeRef.Name != claim.NodeName {
		return policy.Decision{
			Check: "ComputerName", Reason: v1alpha1.ReasonNameConflict,
			Message: fmt.Sprintf("The computer name of the host is %s, and the host of WindowsInstance %s (%s), Node %s, "+
				"has the same computer name. Each host would take the other's Node for its own and create the other's pod network.",
				computerName(&claim.Instance), other.Name, other.Spec.Address, other.Status.NodeRef.Name),
		}
	}
	return policy.Decision{
		Check: "OtherInstance", Reason: v1alpha1.ReasonNameConflict,
		Message: fmt.Sprintf("Node name %s is already used by the host of WindowsInstance %s (%s).", claim.NodeName, other.Name, other.Spec.Address),
	}
}

// StillHeld decides whether an instance keeps the name that it was granted when an instance of the same host has the
// name too. That happens when an entry comes back whose host was taken over in the meantime. The one that the Node is
// bound to keeps it; without a Node, the older one.
func StillHeld(claim Claim) policy.Decision {
	holder := ""
	if claim.Node != nil {
		holder = claim.Node.Annotations[v1alpha1.AnnotationInstance]
	}
	for i := range claim.Others {
		other := &claim.Others[i]
		if other.Name == claim.Instance.Name || !nodeidentity.KeepsNode(other) ||
			nodeidentity.ConfirmedName(other) != claim.NodeName || !nodeidentity.SameHost(&claim.Instance, other) {
			continue
		}
		if holder == other.Name || holder != claim.Instance.Name && older(other, &claim.Instance) {
			return duplicate(other)
		}
	}
	return policy.Decision{Allowed: true}
}

func duplicate(other *v1alpha1.WindowsInstance) policy.Decision {
	return policy.Decision{
		Check: "SameHost", Reason: v1alpha1.ReasonDuplicateHost,
		Message: fmt.Sprintf("This is the host of WindowsInstance %s (%s), Node %s: same host key and machine ID. It is configured once, by that instance.",
			other.Name, other.Spec.Address, other.Status.NodeRef.Name),
	}
}

// older tells who of two claimants was there first. Equal times are decided by name.
func older(a, b *v1alpha1.WindowsInstance) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

func againstNode(claim Claim) policy.Decision {
	node := claim.Node
	switch {
	case node == nil:
		return policy.Decision{Allowed: true}
	case node.Annotations[v1alpha1.AnnotationInstance] == claim.Instance.Name:
		return policy.Decision{Allowed: true}
	case node.Annotations[v1alpha1.AnnotationInstance] == "" && joining(node):
		// Our own kubelet has registered, and the operator was ended before it could bind the Node.
		return policy.Decision{Allowed: true}
	}
	if holder := node.Annotations[v1alpha1.AnnotationInstance]; holder != "" && handedOver(claim, holder) {
		return policy.Decision{Allowed: true}
	}
	if nodeidentity.OlderNode(node) {
		return takesOver(claim)
	}
	return policy.Decision{
		Check: "OtherNode", Reason: v1alpha1.ReasonNameConflict,
		Message: fmt.Sprintf("Node %s exists and belongs to another host. No certificate is issued for a name that belongs to another.", claim.NodeName),
	}
}

// joining reports whether a Node was registered by a kubelet that this operator configured and has not taken pods yet.
func joining(node *corev1.Node) bool {
	return node.Labels[corev1.LabelOSStable] == "windows" && nodeidentity.Unproven(node)
}

// handedOver reports whether the Node is bound to an instance of the same host that is being removed, has come back as a
// duplicate without a name, or is gone. Of one that is gone, the host key tells whose host it was: the operator has noted
// on the Node the key that it had pinned.
func handedOver(claim Claim, holder string) bool {
	for i := range claim.Others {
		if other := &claim.Others[i]; other.Name == holder {
			leaves := other.Spec.DesiredState == v1alpha1.DesiredStateRemoved || other.Status.NodeRef == nil
			return leaves && nodeidentity.SameHost(&claim.Instance, other)
		}
	}
	key := claim.Instance.Status.HostKey
	return key != nil && key.Key != "" && key.Key == claim.Node.Annotations[v1alpha1.AnnotationHostKey] &&
		claim.Node.Labels[corev1.LabelOSStable] == "windows"
}

// StillGranted decides whether the node name that was granted to an instance is still its own to have certificates and
// a Node for. Claims of other instances do not matter, because a confirmed claim stays; but another machine's Node may
// have taken that name, or a new Machine may have it.
func StillGranted(claim Claim) policy.Decision {
	if claim.Node != nil && nodeidentity.Bound(&claim.Instance, claim.Node) {
		return policy.Decision{Allowed: true}
	}
	if decision := againstMachines(claim); !decision.Allowed {
		return decision
	}
	return againstNode(claim)
}
