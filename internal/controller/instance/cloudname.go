package instance

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// cloudNodeName is the name by which the cloud knows the machine, or the one that its node has already.
func (s *scope) cloudNodeName(ctx context.Context) (string, *obstacle) {
	told := nodename.CloudAnswer{Platform: s.cluster.Platform}
	if facts := s.session.facts.CloudName; facts != nil {
		told.Name, told.Error = facts.Name, facts.Error
	}
	if kept, err := s.keepsName(ctx, told); kept || err != nil {
		if err != nil {
			return "", apiObstacle(v1alpha1.ConditionJoined, "read the Node", err)
		}
		return s.nodeName(), nil
	}
	var err error
	if told.Addresses, err = s.machineAddresses(ctx); err != nil {
		return "", apiObstacle(v1alpha1.ConditionJoined, "read the Machine", err)
	}
	name, decision := nodename.OfCloud(told)
	if decision.Allowed {
		return name, nil
	}
	s.session.facts = nil // the next attempt asks the host again
	return "", cloudNameObstacle(decision)
}

// keepsName reports whether the host keeps the node name that it has been granted.
func (s *scope) keepsName(ctx context.Context, told nodename.CloudAnswer) (bool, error) {
	ref := s.instance.Status.NodeRef
	if ref == nil || !ref.Confirmed {
		return false, nil
	}
	if nodename.Keeps(ref.Name, ref.UID != "", told) {
		return true, nil
	}
	node, err := s.liveNode(ctx, ref.Name) // the kubelet may have registered it, and nobody has noted that yet
	return err == nil && nodename.Keeps(ref.Name, node != nil, told), err
}

// machineAddresses are those of the instance's Machine; none when it has no Machine.
func (s *scope) machineAddresses(ctx context.Context) ([]corev1.NodeAddress, error) {
	if !s.ofMachine() {
		return nil, nil
	}
	machine, err := s.machine(ctx)
	if err != nil || machine == nil {
		return nil, err
	}
	return machine.Status.Addresses, nil
}

// machines are all Machines of the cluster, read from the API server; none where there is no Machine API.
func (s *scope) machines(ctx context.Context) ([]machinev1beta1.Machine, error) {
	var list machinev1beta1.MachineList
	err := s.Live.List(ctx, &list, client.InNamespace(v1alpha1.MachineNamespace))
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list Machines, whose names are taken: %w", err)
	}
	return list.Items, nil
}

func cloudNameObstacle(decision policy.Decision) *obstacle {
	if decision.Reason == v1alpha1.ReasonNameConflict {
		return &obstacle{
			condition: v1alpha1.ConditionJoined, reason: decision.Reason, message: decision.Message,
			next: untouched + "If the Machine is right, look at who controls the host; delete the Machine to have it replaced.",
		}
	}
	return &obstacle{
		condition: v1alpha1.ConditionSupported, reason: decision.Reason, message: decision.Message,
		next: untouched + "Let the host reach http://169.254.169.254, in its routes and firewall and in the instance's metadata options; the operator then goes on by itself. " +
			"On AWS and GCP only machines of that cloud can be nodes: take a host that is elsewhere out of its source.",
	}
}
