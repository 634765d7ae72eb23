package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// cloudNodeName is the name by which the cloud knows the machine, or the one that its node has already.
func (s *scope) cloudNodeName(ctx context.Context) (string, *obstacle) {
	told := policy.CloudName{Platform: s.cluster.Platform}
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
	name, decision := policy.CloudNodeName(told)
	if decision.Allowed {
		return name, nil
	}
	s.session.facts = nil // the next attempt asks the host again
	return "", cloudNameObstacle(decision)
}

// keepsName tells whether the host keeps the node name that it has been granted.
func (s *scope) keepsName(ctx context.Context, told policy.CloudName) (bool, error) {
	ref, hostName := s.instance.Status.NodeRef, s.session.facts.System.HostName
	if ref == nil || !ref.Confirmed {
		return false, nil
	}
	registered := ref.UID != ""
	if !registered && !policy.KeepsName(ref.Name, false, hostName, told) {
		node, err := s.node(ctx)
		if err != nil {
			return false, err
		}
		registered = node != nil
	}
	return policy.KeepsName(ref.Name, registered, hostName, told), nil
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

func cloudNameObstacle(decision policy.Decision) *obstacle {
	if decision.Reason == v1alpha1.ReasonNameConflict {
		return &obstacle{
			condition: v1alpha1.ConditionJoined, reason: decision.Reason, message: decision.Message,
			next: "Nothing on the host was changed. If the Machine is right, look at who controls the host; delete the Machine to have it replaced.",
		}
	}
	return &obstacle{
		condition: v1alpha1.ConditionSupported, reason: decision.Reason, message: decision.Message,
		next: "Nothing on the host was changed. Let the host reach http://169.254.169.254, in its routes and firewall and in the instance's metadata options; the operator then goes on by itself.",
	}
}
