package nodename

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// LegacyProof is the evidence for the host of a legacy Node. None of it comes from the host that claims the Node.
type LegacyProof struct {
	// Dialed is the remote IP address of the connection to the claimant's host; empty without a connection.
	Dialed string
	// RecordedKey is the host key in base64 that the legacy operator recorded for the claimant's address; empty if there
	// is none.
	RecordedKey string
	// Machine is the claimant's Machine; nil if there is none, or if the Machine was replaced by another of the same
	// name.
	Machine *MachineProof
}

// MachineProof holds the facts of the Machine API about a Machine and a Node.
type MachineProof struct {
	// NodeName and NodeUID are status.nodeRef; empty if unset. The UID may be unknown.
	NodeName string
	NodeUID  types.UID
	// Addresses are the Machine's internal IP addresses.
	Addresses []string
	// NodeOfOtherMachine is true if the Node belongs to another Machine.
	NodeOfOtherMachine bool
}

// decideAdoption decides whether a legacy Node belongs to the claimant's host. The host's own report is no proof:
// otherwise a hostile host could obtain the name of another host, and with it the certificate.
func decideAdoption(claim Claim) policy.Decision {
	checks := listedHostChecks
	if claim.Instance.Spec.Source.Machine != nil {
		checks = machineHostChecks
	}
	decision := policy.Decide(claim, "The Node belongs to this host.", append([]policy.Check[Claim]{legacyNodeCheck}, checks...))
	if !decision.Allowed && decision.Check != legacyNodeCheck.Name {
		decision.Message = fmt.Sprintf("Node %s was configured by version %s of the operator, and is adopted only for its own host: %s",
			claim.Node.Name, versionOf(claim.Node), decision.Message)
	}
	return decision
}

func versionOf(node *corev1.Node) string {
	if version := node.Annotations[v1alpha1.AnnotationVersion]; version != "" {
		return version
	}
	return "(unknown)"
}

var (
	legacyNodeCheck = policy.Check[Claim]{Name: "LegacyNodeNotFound", Reason: v1alpha1.ReasonNameConflict, Violation: func(c Claim) string {
		if c.Node == nil || !nodeidentity.IsLegacyNode(c.Node) {
			return "There is no Node of the legacy operator (before version 12)."
		}
		return ""
	}}

	// listedHostChecks are for hosts of the ConfigMap windows-instances.
	listedHostChecks = []policy.Check[Claim]{
		{Name: "LegacyNodeSourceMismatch", Reason: v1alpha1.ReasonNameConflict, Violation: func(c Claim) string {
			if c.Node.Labels[v1alpha1.LabelBYOH] == "true" {
				return ""
			}
			return "it is the node of a Machine, and this host is listed in ConfigMap windows-instances."
		}},
		{Name: "LegacyNodeAddressMismatch", Reason: v1alpha1.ReasonNameConflict, Violation: func(c Claim) string {
			if c.Legacy.Dialed != "" && slices.Contains(nodeidentity.InternalIPs(c.Node.Status.Addresses), c.Legacy.Dialed) {
				return ""
			}
			return fmt.Sprintf("the host was reached at %s, and the Node's addresses are %v. If the host is the same and its address has changed, delete the Node: the host then joins as a new node.",
				addressOrNone(c.Legacy.Dialed), nodeidentity.InternalIPs(c.Node.Status.Addresses))
		}},
		hostKeyCheck,
	}

	// machineHostChecks are for hosts of Machines.
	machineHostChecks = []policy.Check[Claim]{
		{Name: "LegacyNodeSourceMismatch", Reason: v1alpha1.ReasonNameConflict, Violation: func(c Claim) string {
			if _, listed := c.Node.Labels[v1alpha1.LabelBYOH]; !listed {
				return ""
			}
			return "it is the node of a host in windows-instances, and this host belongs to a Machine."
		}},
		{Name: "LegacyNodeMachineMismatch", Reason: v1alpha1.ReasonNameConflict, Violation: machineMismatch},
		hostKeyCheck,
	}

	hostKeyCheck = policy.Check[Claim]{Name: "LegacyNodeHostKeyMismatch", Reason: v1alpha1.ReasonNameConflict, Violation: hostKeyMismatch}
)

// machineMismatch describes why the Node does not belong to the claimant's Machine.
func machineMismatch(c Claim) string {
	machine := c.Legacy.Machine
	switch {
	case machine == nil:
		return "its Machine is not known."
	case machine.NodeOfOtherMachine:
		return "it is the node of another Machine."
	case machine.NodeName != "" && machine.NodeName != c.Node.Name:
		return fmt.Sprintf("the node of this host's Machine is %s.", machine.NodeName)
	case machine.NodeName != "" && machine.NodeUID != "" && machine.NodeUID != c.Node.UID:
		return "the node of this host's Machine was a different Node with the same name."
	case machine.NodeName != "":
		return ""
	case slices.ContainsFunc(nodeidentity.InternalIPs(c.Node.Status.Addresses), func(ip string) bool { return slices.Contains(machine.Addresses, ip) }):
		return ""
	}
	return fmt.Sprintf("the addresses of this host's Machine are %v, the addresses of the Node are %v.", machine.Addresses,
		nodeidentity.InternalIPs(c.Node.Status.Addresses))
}

// hostKeyMismatch reports that the host presented a key other than the key recorded by the legacy operator. It returns
// "" without a connection, because no key was presented.
func hostKeyMismatch(c Claim) string {
	shown, known := c.Instance.Status.HostKey, c.Node.Annotations[v1alpha1.AnnotationHostKey]
	if known == "" {
		known = c.Legacy.RecordedKey
	}
	if shown == nil || known == "" || shown.Key == known {
		return ""
	}
	if nodeidentity.IsHostKeyAccepted(&c.Instance, shown.Fingerprint) {
		return ""
	}
	return fmt.Sprintf("the host presented the key %s, but another key is recorded for it.", shown.Fingerprint)
}

func addressOrNone(address string) string {
	if address == "" {
		return "no address yet"
	}
	return address
}
