package facts

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/agent/identity"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// gatherIdentities reads the certificates of the kubelet and of the services with their own certificates, and the
// pending requests. Facts contain no keys.
func (g *gatherer) gatherIdentities(ctx context.Context) (err error) {
	if g.spec.Identity.Directory != "" {
		if g.facts.Identity, err = g.readIdentity(ctx, g.spec.Identity); err != nil {
			return err
		}
	}
	for _, each := range g.spec.Identities {
		facts, err := g.readIdentity(ctx, each)
		if err != nil {
			return err
		}
		if g.facts.Identities == nil {
			g.facts.Identities = map[string]plan.IdentityFacts{}
		}
		g.facts.Identities[each.Name] = facts
	}
	return nil
}

func (g *gatherer) readIdentity(ctx context.Context, of nodespec.Identity) (facts plan.IdentityFacts, err error) {
	current, err := identity.Current(ctx, g.Host.Files, of)
	if err != nil {
		return facts, err
	}
	if current != nil {
		leaf := current.Chain[0]
		facts.Current = &plan.CertificateFacts{
			CommonName: leaf.Subject.CommonName, Organization: leaf.Subject.Organization,
			Serial: leaf.SerialNumber.Text(16), NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter,
		}
	}
	pending, err := identity.Pending(ctx, g.Host.Files, of)
	if err != nil {
		return facts, err
	}
	if pending != nil {
		facts.Request = pending.RequestPEM()
	}
	return facts, nil
}
