package instance

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
	"github.com/windows-machine-config/wmco/internal/policy/ownership"
)

// +kubebuilder:rbac:groups=machine.openshift.io,resources=machines,verbs=get;list

// proveOlderNode adds to a claim what shows whose the Node of an operator before version 12 is.
func (s *scope) proveOlderNode(ctx context.Context, claim *nodename.Claim) (err error) {
	if claim.Node == nil || !ownership.OlderNode(claim.Node) {
		return nil
	}
	claim.Older, err = s.olderProof(ctx, claim.Node)
	return err
}

func (s *scope) olderProof(ctx context.Context, node *corev1.Node) (nodename.OlderProof, error) {
	proof := nodename.OlderProof{}
	if s.connection != nil {
		proof.Dialed = s.connection.Address()
	}
	noted, err := s.notedHostKeys(ctx)
	if err != nil {
		return proof, err
	}
	proof.NotedKey = notedFor(noted, s.instance.Spec.Address, proof.Dialed)
	if s.ofMachine() {
		proof.Machine, err = s.machineProof(ctx, node)
	}
	return proof, err
}

// olderNodeOfMachine finds the Node of the instance's Machine, if an operator before version 12 has configured it: by what the Machine says,
// or, as long as it says nothing, by its address. There is none for the Machines of most clusters, which then costs no request.
func (s *scope) olderNodeOfMachine(ctx context.Context) (*corev1.Node, *nodename.MachineProof, error) {
	var nodes corev1.NodeList
	if err := s.Client.List(ctx, &nodes); err != nil {
		return nil, nil, fmt.Errorf("list Windows nodes: %w", err)
	}
	older, err := s.olderNodes(ctx, nodes.Items)
	if err != nil || len(older) == 0 {
		return nil, nil, err
	}
	machine, err := s.machine(ctx)
	if err != nil || machine == nil {
		return nil, nil, err
	}
	name, addresses := "", internalIPs(machine.Status.Addresses)
	if machine.Status.NodeRef != nil {
		name = machine.Status.NodeRef.Name
	}
	i := slices.IndexFunc(older, func(node corev1.Node) bool {
		if name != "" {
			return node.Name == name
		}
		return slices.ContainsFunc(internalIPs(node.Status.Addresses), func(ip string) bool { return slices.Contains(addresses, ip) })
	})
	if i < 0 {
		return nil, nil, nil
	}
	node, err := s.liveNode(ctx, older[i].Name)
	if err != nil || node == nil || !ownership.OlderNode(node) {
		return nil, nil, err
	}
	proof, err := s.machineProof(ctx, node)
	return node, proof, err
}

// olderNodes are those Nodes that an operator before version 12 has configured and that no other instance has. A kubelet may write on its own
// Node what it likes, and take off it whose it is: with the address of another host it must not hold that up.
func (s *scope) olderNodes(ctx context.Context, nodes []corev1.Node) ([]corev1.Node, error) {
	older := slices.DeleteFunc(slices.Clone(nodes), func(node corev1.Node) bool { return !ownership.OlderNode(&node) })
	if len(older) == 0 {
		return nil, nil
	}
	var instances v1alpha1.WindowsInstanceList
	if err := s.Client.List(ctx, &instances, client.InNamespace(s.Namespace)); err != nil {
		return nil, fmt.Errorf("list WindowsInstances: %w", err)
	}
	return slices.DeleteFunc(older, func(node corev1.Node) bool {
		return slices.ContainsFunc(instances.Items, func(other v1alpha1.WindowsInstance) bool {
			ref := other.Status.NodeRef
			return other.Name != s.instance.Name && ref != nil && ref.Confirmed && ref.Name == node.Name
		})
	}), nil
}

// machine reads the instance's Machine; nil when it is gone, and perhaps another of its name is there.
func (s *scope) machine(ctx context.Context) (*machinev1beta1.Machine, error) {
	reference := s.instance.Spec.Source.Machine
	machine := &machinev1beta1.Machine{}
	err := s.Live.Get(ctx, types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}, machine)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Machine %s/%s: %w", reference.Namespace, reference.Name, err)
	}
	if machine.UID != reference.UID {
		return nil, nil
	}
	return machine, nil
}

// machineProof is what the Machine API says of the instance's Machine and of a Node.
func (s *scope) machineProof(ctx context.Context, node *corev1.Node) (*nodename.MachineProof, error) {
	machine, err := s.machine(ctx)
	if err != nil || machine == nil {
		return nil, err
	}
	proof := &nodename.MachineProof{Addresses: internalIPs(machine.Status.Addresses)}
	if reference := machine.Status.NodeRef; reference != nil {
		proof.NodeName, proof.NodeUID = reference.Name, reference.UID
	}
	var others machinev1beta1.MachineList
	if err := s.Live.List(ctx, &others, client.InNamespace(machine.Namespace)); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	proof.OfAnother = slices.ContainsFunc(others.Items, func(other machinev1beta1.Machine) bool {
		return other.Name != machine.Name && other.Status.NodeRef != nil && other.Status.NodeRef.Name == node.Name
	})
	return proof, nil
}

func internalIPs(addresses []corev1.NodeAddress) []string {
	var ips []string
	for _, address := range addresses {
		if address.Type == corev1.NodeInternalIP {
			ips = append(ips, address.Address)
		}
	}
	return ips
}
