package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/delivery"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
)

// install is the phase that brings a host to its NodeSpec.
type install struct {
	specs    desired.Specs
	delivery *delivery.Delivery
	status   status.Writer
}

// run brings the host to the spec, as far as the spec is known.
func (p install) run(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	spec, o := p.specs.ForNode(ctx, s)
	if o != nil {
		return o
	}
	if err := p.recordNodeIP(ctx, s, spec.NodeIP); err != nil {
		return obstacle.API(v1alpha1.ConditionInstalled, "record the address of the Node", err)
	}
	if o := p.delivery.Apply(ctx, s, spec); o != nil {
		return o
	}
	s.Pass(v1alpha1.ConditionPrepared, "Windows features and host name are in force.")
	s.Pass(v1alpha1.ConditionInstalled, "Payload, configuration and services are on the host.")
	return nil
}

// recordNodeIP records the internal IP address of the Node before the kubelet gets it. The address at which the host was
// reached can wait for the next write: certificates are issued for it anyway.
func (p install) recordNodeIP(ctx context.Context, s *scope.Scope, nodeIP string) error {
	host := s.Instance.Status.Host
	if host.NodeIP == nodeIP {
		return nil
	}
	host.NodeIP = nodeIP
	if nodeIP == host.ReachedAt {
		return nil
	}
	return p.status.Patch(ctx, s)
}
