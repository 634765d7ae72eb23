package facts

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// gatherAppliedSpecs gathers the facts of the last applied spec and of the rollback target.
func (g *gatherer) gatherAppliedSpecs(ctx context.Context) error {
	applied, err := g.Records.Applied(ctx)
	if err != nil {
		return err
	}
	g.facts.Applied = applied.Digest
	if g.facts.AppliedAgent, err = g.agentIfInstalled(ctx, applied.Agent); err != nil {
		return err
	}
	kept, err := g.Records.RollbackTarget(ctx)
	if err != nil {
		return err
	}
	if kept == nil {
		_, g.facts.NoRollbackReason, err = g.RollbackCandidate(ctx)
		return err
	}
	// The releases are kept even if no agent on the host can apply the rollback target.
	g.facts.RollbackReleases = kept.Releases
	if g.facts.RollbackAgent, err = g.agentIfInstalled(ctx, kept.Agent); err != nil {
		return err
	}
	if g.facts.NoRollbackReason, err = g.UnusableReason(ctx, *kept); err == nil && g.facts.NoRollbackReason == "" {
		g.facts.RollbackTarget = kept.Digest
	}
	return err
}

// agentIfInstalled returns the SHA-256 of an agent if its program is on the host, and otherwise an empty string.
func (s *Source) agentIfInstalled(ctx context.Context, sum string) (string, error) {
	there, err := s.Program.IsInstalled(ctx, s.Host.Files, sum)
	if err != nil || !there {
		return "", err
	}
	return sum, nil
}

// RollbackCandidate returns the last completely applied NodeSpec, which becomes the rollback target when another
// NodeSpec is applied. If there is none, or no agent on the host could apply it, why is the reason.
func (s *Source) RollbackCandidate(ctx context.Context) (keepable *state.RollbackTarget, why string, err error) {
	keepable, why, err = s.Records.RollbackCandidate(ctx)
	if err != nil || keepable == nil {
		return nil, why, err
	}
	why, err = s.UnusableReason(ctx, *keepable)
	if err != nil || why != "" {
		return nil, why, err
	}
	return keepable, "", nil
}

// UnusableReason returns the reason why no agent on the host could apply a rollback target. The reason is empty if
// the agent that applied the rollback target, or else this agent, can.
func (s *Source) UnusableReason(ctx context.Context, fallback state.RollbackTarget) (why string, err error) {
	_, fault := nodespec.Decode(fallback.Document)
	if fault == nil {
		return "", nil
	}
	agent, err := s.agentIfInstalled(ctx, fallback.Agent)
	if err != nil || agent != "" {
		return "", err
	}
	return fmt.Sprintf("the agent that applied the rollback target is no longer on the host, and this agent cannot apply it: %v", fault), nil
}
