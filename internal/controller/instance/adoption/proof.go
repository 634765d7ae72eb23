package adoption

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// AddLegacyProof adds to a claim the evidence that identifies the host of a legacy Node.
func (a *Adoption) AddLegacyProof(ctx context.Context, s *scope.Scope, claim *nodename.Claim) (err error) {
	if claim.Node == nil || !nodeidentity.IsLegacyNode(claim.Node) {
		return nil
	}
	claim.Legacy, err = a.buildLegacyProof(ctx, s, claim.Node)
	return err
}

func (a *Adoption) buildLegacyProof(ctx context.Context, s *scope.Scope, node *corev1.Node) (nodename.LegacyProof, error) {
	proof := nodename.LegacyProof{}
	if s.Host.Connection != nil {
		proof.Dialed = s.Host.Connection.Address()
	}
	noted, err := a.readRecordedHostKeys(ctx)
	if err != nil {
		return proof, err
	}
	proof.RecordedKey = recordedHostKey(noted, s.Instance.Spec.Address, proof.Dialed)
	if s.HasMachine() {
		proof.Machine, err = a.machineProof(ctx, s, node)
	}
	return proof, err
}

// legacyNodeOfMachine returns the legacy Node of the instance's Machine. The Node is found by the Machine's
// node reference or, if that is unset, by the address. Most clusters have no legacy Nodes, and then no
// request is sent. The decision refuses several Nodes with the address.
func (a *Adoption) legacyNodeOfMachine(ctx context.Context, s *scope.Scope) (*corev1.Node,
	*nodename.MachineProof, policy.Decision, error) {
	none := policy.Decision{Allowed: true}
	older, err := a.legacyNodes(ctx, s)
	if err != nil || len(older) == 0 {
		return nil, nil, none, err
	}
	machine, err := a.Machines.Get(ctx, s.Instance)
	if err != nil || machine == nil {
		return nil, nil, none, err
	}
	found := legacyNodesOf(machine, older)
	if len(found) == 0 {
		return nil, nil, none, nil
	}
	if decision := nodename.OneLegacyNode(found, s.Instance.Spec.Address); !decision.Allowed {
		return nil, nil, decision, nil
	}
	node, err := a.Nodes.GetByName(ctx, found[0].Name)
	if err != nil || node == nil || !nodeidentity.IsLegacyNode(node) {
		return nil, nil, none, err
	}
	proof, err := a.machineProof(ctx, s, node)
	return node, proof, none, err
}

// legacyNodesOf returns the legacy Nodes that may belong to a Machine: the Node in the Machine's node
// reference or, if that is unset, Nodes with a matching address that are not from listed hosts.
func legacyNodesOf(machine *machinev1beta1.Machine, older []corev1.Node) []corev1.Node {
	addresses := nodeidentity.InternalIPs(machine.Status.Addresses)
	var found []corev1.Node
	for i := range older {
		node := &older[i]
		if reference := machine.Status.NodeRef; reference != nil && reference.Name != "" {
			if node.Name == reference.Name {
				found = append(found, *node)
			}
			continue
		}
		if _, listed := node.Labels[v1alpha1.LabelBYOH]; !listed && slices.ContainsFunc(addresses, func(ip string) bool {
			return nodename.HasInternalIP(node, ip)
		}) {
			found = append(found, *node)
		}
	}
	return found
}

// legacyNodes returns the Nodes that a legacy operator configured and that belong to no other instance. A
// kubelet may write any address to its own Node and remove the binding. Such a Node must not block the
// adoption of another host with that address.
func (a *Adoption) legacyNodes(ctx context.Context, s *scope.Scope) ([]corev1.Node, error) {
	older, err := index.LegacyNodes(ctx, a.Client)
	if err != nil || len(older) == 0 {
		return nil, err
	}
	var instances v1alpha1.WindowsInstanceList
	if err := a.Client.List(ctx, &instances, client.InNamespace(a.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list WindowsInstances: %w", err)
	}
	return slices.DeleteFunc(older, func(node corev1.Node) bool {
		return slices.ContainsFunc(instances.Items, func(other v1alpha1.WindowsInstance) bool {
			ref := other.Status.NodeRef
			return other.Name != s.Instance.Name && ref != nil && ref.Confirmed && ref.Name == node.Name
		})
	}), nil
}

// machineProof returns the evidence of the Machine API for the instance's Machine and a Node.
func (a *Adoption) machineProof(ctx context.Context, s *scope.Scope, node *corev1.Node) (*nodename.MachineProof, error) {
	machine, err := a.Machines.Get(ctx, s.Instance)
	if err != nil || machine == nil {
		return nil, err
	}
	proof := &nodename.MachineProof{Addresses: nodeidentity.InternalIPs(machine.Status.Addresses)}
	if reference := machine.Status.NodeRef; reference != nil {
		proof.NodeName, proof.NodeUID = reference.Name, reference.UID
	}
	var others machinev1beta1.MachineList
	if err := a.Live.List(ctx, &others, client.InNamespace(machine.Namespace)); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	proof.NodeOfOtherMachine = slices.ContainsFunc(others.Items, func(other machinev1beta1.Machine) bool {
		return other.Name != machine.Name && other.Status.NodeRef != nil && other.Status.NodeRef.Name == node.Name
	})
	return proof, nil
}
