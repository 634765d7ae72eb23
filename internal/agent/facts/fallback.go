package facts

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// specs is what the agent knows of the spec that was applied last, and of the one that a rollback goes back to.
func (g *gatherer) specs(ctx context.Context) error {
	applied, err := g.Records.Applied(ctx)
	if err != nil {
		return err
	}
	g.facts.Applied = applied.Digest
	if g.facts.AppliedAgent, err = g.beside(ctx, applied.Agent); err != nil {
		return err
	}
	kept, err := g.Records.Fallback(ctx)
	if err != nil {
		return err
	}
	if kept == nil {
		_, g.facts.NoFallback, err = g.Keepable(ctx)
		return err
	}
	// Its releases stay also if no agent on the host can apply it.
	g.facts.Kept = kept.Releases
	if g.facts.FallbackAgent, err = g.beside(ctx, kept.Agent); err != nil {
		return err
	}
	if g.facts.NoFallback, err = g.Unusable(ctx, *kept); err == nil && g.facts.NoFallback == "" {
		g.facts.Fallback = kept.Digest
	}
	return err
}

// beside returns the SHA-256 of an agent if it lies on the host; else nothing.
func (s *Source) beside(ctx context.Context, sum string) (string, error) {
	there, err := s.Program.Beside(ctx, s.Host.Files, sum)
	if err != nil || !there {
		return "", err
	}
	return sum, nil
}

// Keepable returns what the host could go back to after another NodeSpec was applied. If there is nothing, or nothing
// that an agent on the host could apply again, why says so.
func (s *Source) Keepable(ctx context.Context) (keepable *state.Fallback, why string, err error) {
	keepable, why, err = s.Records.Keepable(ctx)
	if err != nil || keepable == nil {
		return nil, why, err
	}
	why, err = s.Unusable(ctx, *keepable)
	if err != nil || why != "" {
		return nil, why, err
	}
	return keepable, "", nil
}

// Unusable says why no agent on the host could bring it back to a fallback; it is empty if one can: the agent that has
// applied it, or else this one.
func (s *Source) Unusable(ctx context.Context, fallback state.Fallback) (why string, err error) {
	_, fault := nodespec.Decode(fallback.Document)
	if fault == nil {
		return "", nil
	}
	agent, err := s.beside(ctx, fallback.Agent)
	if err != nil || agent != "" {
		return "", err
	}
	return fmt.Sprintf("the agent that applied its NodeSpec is not on the host any more, and this one cannot: %v", fault), nil
}
