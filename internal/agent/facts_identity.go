package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// identities reads the certificates of the kubelet and of the services that have one of their own, and the requests that wait. Of the keys
// nothing is told.
func (g *gatherer) identities(ctx context.Context) (err error) {
	if g.spec.Identity.Directory != "" {
		if g.facts.Identity, err = g.identity(ctx, g.spec.Identity); err != nil {
			return err
		}
	}
	for _, identity := range g.spec.Identities {
		facts, err := g.identity(ctx, identity)
		if err != nil {
			return err
		}
		if g.facts.Identities == nil {
			g.facts.Identities = map[string]plan.IdentityFacts{}
		}
		g.facts.Identities[identity.Name] = facts
	}
	return nil
}

func (g *gatherer) identity(ctx context.Context, identity nodespec.Identity) (facts plan.IdentityFacts, err error) {
	current, err := g.current(ctx, identity)
	if err != nil {
		return facts, err
	}
	if current != nil {
		leaf := current.chain[0]
		facts.Current = &plan.CertificateFacts{
			CommonName: leaf.Subject.CommonName, Organization: leaf.Subject.Organization,
			Serial: leaf.SerialNumber.Text(16), NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter,
		}
	}
	pending, err := g.pending(ctx, identity)
	if err != nil {
		return facts, err
	}
	if pending != nil {
		facts.Request = pending.requestPEM()
	}
	return facts, nil
}

// current is the certificate in use; nil when a certificate store of client-go could not work with what is there.
func (a *agent) current(ctx context.Context, identity nodespec.Identity) (*pair, error) {
	link := currentLink(identity)
	info, err := a.host.Files.Stat(ctx, link)
	if errors.Is(err, host.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", link, err)
	}
	if info.LinkTarget == "" {
		return nil, nil
	}
	data, err := a.store.read(ctx, link)
	if err != nil {
		return nil, err
	}
	if p := parsePair(data); p != nil && len(p.chain) > 0 {
		return p, nil
	}
	return nil, nil
}

// pending is the key that waits for its certificate; nil when none does. A key whose certificate is in use waits no more.
func (a *agent) pending(ctx context.Context, identity nodespec.Identity) (*pair, error) {
	data, err := a.store.read(ctx, pendingFile(identity))
	if err != nil {
		return nil, err
	}
	waiting := parsePair(data)
	if waiting == nil || waiting.request == nil {
		return nil, nil
	}
	current, err := a.current(ctx, identity)
	if err != nil {
		return nil, err
	}
	if current != nil && current.key.Equal(waiting.key) {
		return nil, nil
	}
	return waiting, nil
}
