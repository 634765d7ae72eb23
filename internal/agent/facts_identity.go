package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// identity reads the kubelet's certificate and the request that waits. Of the keys nothing is told.
func (g *gatherer) identity(ctx context.Context) error {
	directory := g.spec.Identity.Directory
	if directory == "" {
		return nil
	}
	current, err := g.current(ctx, directory+currentLink)
	if err != nil {
		return err
	}
	if current != nil {
		leaf := current.chain[0]
		g.facts.Identity.Current = &plan.CertificateFacts{
			CommonName: leaf.Subject.CommonName, Organization: leaf.Subject.Organization,
			Serial: leaf.SerialNumber.Text(16), NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter,
		}
	}
	pending, err := g.pending(ctx, directory)
	if err != nil {
		return err
	}
	if pending != nil {
		g.facts.Identity.Request = pending.requestPEM()
	}
	return nil
}

// current is the certificate in use; nil when the kubelet's store could not work with what is there.
func (a *agent) current(ctx context.Context, link string) (*pair, error) {
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
func (a *agent) pending(ctx context.Context, directory string) (*pair, error) {
	data, err := a.store.read(ctx, directory+pendingFile)
	if err != nil {
		return nil, err
	}
	waiting := parsePair(data)
	if waiting == nil || waiting.request == nil {
		return nil, nil
	}
	current, err := a.current(ctx, directory+currentLink)
	if err != nil {
		return nil, err
	}
	if current != nil && current.key.Equal(waiting.key) {
		return nil, nil
	}
	return waiting, nil
}
