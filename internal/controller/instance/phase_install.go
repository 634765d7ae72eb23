package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// installPhase is the phase that configures a host with its NodeSpec.
type installPhase struct {
	specs    desired.SpecBuilder
	delivery delivery
}

// reconcile applies the spec, as far as the spec is known.
func (p installPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	spec, o := p.specs.BuildForCachedNode(ctx, s)
	if o != nil {
		return o
	}
	s.Instance.Status.Host.NodeIP = spec.NodeIP // before the kubelet gets it
	if o := p.delivery.apply(ctx, s, spec); o != nil {
		return o
	}
	s.MarkTrue(v1alpha1.ConditionPrepared, "Windows features and host name are configured.")
	s.MarkTrue(v1alpha1.ConditionInstalled, "Payload, configuration and services are installed.")
	return nil
}
