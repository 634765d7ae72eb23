package facts

import (
	"context"
	"errors"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// gatherRegistration determines whether the adapter of kube-proxy's endpoint registers in DNS. An unreadable value
// counts as missing.
func (g *gatherer) gatherRegistration(ctx context.Context, endpoint host.HNSEndpoint) error {
	if endpoint.Adapter == "" {
		return nil
	}
	value, err := g.Host.Registry.Number(ctx, plan.RegistrationName(endpoint.Adapter))
	if err != nil && ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if err != nil || value != plan.RegistrationDisabled {
		g.facts.RegisteringAdapter = endpoint.Adapter
	}
	return nil
}
