package identity

import (
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Current returns the certificate in use, or nil if a certificate store of client-go could not use the files.
func Current(ctx context.Context, from host.Files, identity nodespec.Identity) (*Pair, error) {
	link := currentLink(identity)
	info, err := from.Stat(ctx, link)
	if errors.Is(err, host.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", link, err)
	}
	if info.LinkTarget == "" {
		return nil, nil
	}
	data, err := hostutil.ReadFile(ctx, from, link)
	if err != nil {
		return nil, err
	}
	if p := parsePair(data); p != nil && len(p.Chain) > 0 {
		return p, nil
	}
	return nil, nil
}

// Pending returns the key with a pending certificate request, or nil if there is none. A key with an installed
// certificate is no longer pending.
func Pending(ctx context.Context, from host.Files, identity nodespec.Identity) (*Pair, error) {
	data, err := hostutil.ReadFile(ctx, from, PendingFile(identity))
	if err != nil {
		return nil, err
	}
	waiting := parsePair(data)
	if waiting == nil || waiting.request == nil {
		return nil, nil
	}
	current, err := Current(ctx, from, identity)
	if err != nil {
		return nil, err
	}
	if current != nil && current.Key.Equal(waiting.Key) {
		return nil, nil
	}
	return waiting, nil
}
