// Package nodename determines the name of a host's node and decides whether an instance may have that name. It also
// lists the names and addresses that belong to the cluster itself. It never relies on a host's report about names of
// other hosts.
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

// Claim is the claim of an instance to a node name.
type Claim struct {
	Instance v1alpha1.WindowsInstance
	NodeName string
	// Node is the Node of that name; nil if there is none.
	Node *corev1.Node
	// Others contains all WindowsInstances, with or without the claimant.
	Others []v1alpha1.WindowsInstance
	// Machines are all Machines of the cluster, with or without the claimant's own; empty if there is no Machine API.
	Machines []machinev1beta1.Machine
	// Cluster are the facts of the cluster.
	Cluster nodespec.Cluster
	// Legacy is the proof that a legacy Node belongs to the claimant's host.
	Legacy LegacyProof
	// Now is the operator's time.
	Now time.Time
}

// claimTTL is the time during which an unconfirmed claim counts. The operator confirms or withdraws a claim right
// after writing it, unless the operator is killed in between. If the host then no longer exists, the claim is never
// confirmed or withdrawn.
const claimTTL = 10 * time.Minute

// RenewClaim returns the claim of an instance to a name, and whether the claim must be written before the check. A waiting
// claim is renewed in time, so that it does not expire during the check.
func RenewClaim(present *v1alpha1.NodeReference, name string, now time.Time) (claim *v1alpha1.NodeReference, write bool) {
	claim = &v1alpha1.NodeReference{Name: name, ClaimedAt: ptr.To(metav1.NewTime(now))}
	if present == nil || present.Name != name {
		return claim, true
	}
	if present.Confirmed || present.ClaimedAt != nil && now.Sub(present.ClaimedAt.Time) < claimTTL/2 {
		return present, false
	}
	claim.UID = present.UID
	return claim, true
}

// isAbandoned reports whether no confirmation or withdrawal of an unconfirmed claim can be expected. A claim without a
// time is from an earlier version of the operator.
func (c Claim) isAbandoned(other *v1alpha1.WindowsInstance) bool {
	claimed := other.Status.NodeRef.ClaimedAt
	return other.Spec.Paused || other.Spec.DesiredState == v1alpha1.DesiredStateRemoved ||
		other.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged ||
		claimed == nil || c.Now.Sub(claimed.Time) >= claimTTL
}

// Grant decides whether the instance may have the node name. The name must be free, already bound to this instance,
// or the name of this host's legacy Node. An instance with a confirmed claim keeps the name. If two claims are
// unconfirmed, the younger instance withdraws, because its check may precede the older instance's claim. The older
// instance waits for that withdrawal, but not for an abandoned claim. Reason Waiting means that the caller retries
// soon.
//
// Names used to reach the cluster itself are never granted: a kubelet serves under the name of its node.
//
// The names of Machines belong to the hosts of these Machines, even before a host becomes a node: the first host that
// requests such a name may be the wrong host.
//
// An instance of the same host is a rival under any name: if the source names hosts, two instances of one host have
// different names.
func Grant(claim Claim) policy.Decision {
	if whose := ReservedName(claim.NodeName, &claim.Cluster); whose != "" {
		return policy.Decision{
			Check: "ReservedName", Reason: v1alpha1.ReasonNameConflict,
			Message: fmt.Sprintf("The host would become node %s, which is %s. No certificate is issued for a name of another endpoint.",
				claim.NodeName, whose),
		}
	}
	for i := range claim.Others {
		other := &claim.Others[i]
		if other.Name == claim.Instance.Name || other.Status.NodeRef == nil || !isRival(claim, other) {
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

// againstMachines refuses a name that the host of another Machine has or will have.
func againstMachines(claim Claim) policy.Decision {
	for i := range claim.Machines {
		machine := &claim.Machines[i]
		if nodeidentity.IsOwnMachine(&claim.Instance, machine) || nodeidentity.IsUnmanagedMachine(&claim.Instance, machine) {
			continue
		}
		if slices.ContainsFunc(machineNames(machine), func(name string) bool {
			return strings.EqualFold(name, claim.NodeName)
		}) || strings.EqualFold(machine.Name, firstLabel(claim.NodeName)) {
			return policy.Decision{
				Check: "ForeignMachineName", Reason: v1alpha1.ReasonNameConflict,
				Message: fmt.Sprintf("The host would become node %s, which is a name of Machine %s/%s. No certificate is issued for a name of another host.",
					claim.NodeName, machine.Namespace, machine.Name),
			}
		}
	}
	return policy.Decision{Allowed: true}
}

// machineNames returns the possible names of the Machine's Node. Before the addresses are known, the only candidate
// is the name of the Machine, which most platforms assign to the virtual machine; on vSphere, the Node may add any
// domain.
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

// isRival reports whether another instance claims the same name, has the same computer name, or has the same host
// under any name.
func isRival(claim Claim, other *v1alpha1.WindowsInstance) bool {
	return other.Status.NodeRef.Name == claim.NodeName ||
		nodeidentity.IsSameHost(&claim.Instance, other) && nodeidentity.HasSharedAddress(&claim.Instance, other) ||
		hasSameComputerName(&claim.Instance, other)
}

func againstInstance(claim Claim, other *v1alpha1.WindowsInstance) policy.Decision {
	same := nodeidentity.IsSameHost(&claim.Instance, other)
	if same && other.Spec.DesiredState == v1alpha1.DesiredStateRemoved {
		// The host moved to a new address: the new entry adopts the name from the old entry.
		return policy.Decision{Allowed: true}
	}
	if !other.Status.NodeRef.Confirmed && isOlder(&claim.Instance, other) {
		if claim.isAbandoned(other) {
			return policy.Decision{Allowed: true}
		}
		return policy.Decision{
			Check: "ConcurrentClaim", Reason: v1alpha1.ReasonWaiting, Transient: true,
			Message: fmt.Sprintf("WindowsInstance %s (%s) also claims the node name or the host of this one, and must withdraw within %s.",
				other.Name, other.Spec.Address, policy.ShortDuration(claimTTL)),
		}
	}
	if same {
		return refuseDuplicate(other)
	}
	if other.Status.NodeRef.Name != claim.NodeName {
		return policy.Decision{
			Check: "ComputerNameConflict", Reason: v1alpha1.ReasonNameConflict,
			Message: fmt.Sprintf("The computer name of the host is %s, and the host of WindowsInstance %s (%s), Node %s, "+
				"has the same computer name. Each host would use the Node and the pod network of the other host.",
				computerName(&claim.Instance), other.Name, other.Spec.Address, other.Status.NodeRef.Name),
		}
	}
	return policy.Decision{
		Check: "NodeNameInUse", Reason: v1alpha1.ReasonNameConflict,
		Message: fmt.Sprintf("Node name %s is already used by the host of WindowsInstance %s (%s).", claim.NodeName, other.Name, other.Spec.Address),
	}
}

// StillHeld decides whether an instance keeps its granted name when another instance of the same host also has the
// name. This happens when an entry is listed again after another entry adopted the host. The instance bound to the
// Node keeps the name; without a Node, the older instance does.
func StillHeld(claim Claim) policy.Decision {
	holder := ""
	if claim.Node != nil {
		holder = claim.Node.Annotations[v1alpha1.AnnotationInstance]
	}
	for i := range claim.Others {
		other := &claim.Others[i]
		if other.Name == claim.Instance.Name || !nodeidentity.ShouldKeepNode(other) ||
			nodeidentity.ConfirmedName(other) != claim.NodeName || !nodeidentity.IsSameHost(&claim.Instance, other) {
			continue
		}
		if holder == other.Name || holder != claim.Instance.Name && isOlder(other, &claim.Instance) {
			return refuseDuplicate(other)
		}
	}
	return policy.Decision{Allowed: true}
}

func refuseDuplicate(other *v1alpha1.WindowsInstance) policy.Decision {
	return policy.Decision{
		Check: "DuplicateHost", Reason: v1alpha1.ReasonDuplicateHost,
		Message: fmt.Sprintf("This is the host of WindowsInstance %s (%s), Node %s: same host key and machine ID. It is configured once, by that instance.",
			other.Name, other.Spec.Address, other.Status.NodeRef.Name),
	}
}

// isOlder reports whether instance a was created before instance b. Equal times are decided by name.
func isOlder(a, b *v1alpha1.WindowsInstance) bool {
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
	case node.Annotations[v1alpha1.AnnotationInstance] == "" && isJoining(node):
		// A kubelet configured by this operator has registered, but the operator was stopped before binding the Node.
		return policy.Decision{Allowed: true}
	}
	if holder := node.Annotations[v1alpha1.AnnotationInstance]; holder != "" && isHandedOver(claim, holder) {
		return policy.Decision{Allowed: true}
	}
	if nodeidentity.IsLegacyNode(node) {
		return decideAdoption(claim)
	}
	return policy.Decision{
		Check: "ForeignNode", Reason: v1alpha1.ReasonNameConflict,
		Message: fmt.Sprintf("Node %s exists and belongs to another host. No certificate is issued for a name of another host.", claim.NodeName),
	}
}

// isJoining reports whether a Node was registered by a kubelet that this operator configured, and has not accepted pods
// yet.
func isJoining(node *corev1.Node) bool {
	return node.Labels[corev1.LabelOSStable] == "windows" && nodeidentity.HasStartupTaint(node)
}

// isHandedOver reports whether the Node is bound to an instance of the same host that is being removed, is a duplicate
// without a name, or no longer exists. If the instance no longer exists, the host key identifies the host: the
// operator recorded the pinned key on the Node.
func isHandedOver(claim Claim, holder string) bool {
	for i := range claim.Others {
		if other := &claim.Others[i]; other.Name == holder {
			leaves := other.Spec.DesiredState == v1alpha1.DesiredStateRemoved || other.Status.NodeRef == nil
			return leaves && nodeidentity.IsSameHost(&claim.Instance, other)
		}
	}
	key := claim.Instance.Status.HostKey
	return key != nil && key.Key != "" && key.Key == claim.Node.Annotations[v1alpha1.AnnotationHostKey] &&
		claim.Node.Labels[corev1.LabelOSStable] == "windows"
}

// StillGranted decides whether an instance may still have certificates and a Node for its granted name. Claims of
// other instances do not matter, because a confirmed claim is permanent. However, another machine's Node may have
// registered the name, or a new Machine may have it.
func StillGranted(claim Claim) policy.Decision {
	if claim.Node != nil && nodeidentity.IsBound(&claim.Instance, claim.Node) {
		return policy.Decision{Allowed: true}
	}
	if decision := againstMachines(claim); !decision.Allowed {
		return decision
	}
	return againstNode(claim)
}
