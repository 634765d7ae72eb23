package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// gather finds out what the host is. With a spec, everything that the spec or the ledger names is looked at; without one (nil) only
// what the operator needs to know beforehand. It changes nothing.
func (a *agent) gather(ctx context.Context, spec *nodespec.NodeSpec) (plan.Facts, error) {
	g := &gatherer{agent: a, facts: plan.Facts{Time: a.clock.Now().UTC()}}
	parts := []func(context.Context) error{g.system, g.own, g.releases}
	if spec != nil {
		g.spec = *spec
		parts = append(parts, g.before, g.files, g.features, g.environment, g.firewall, g.services, g.networks, g.processes, g.identities, g.eventSource, g.antivirus,
			g.trustedCertificates, g.routes)
	}
	// A verb that waits for ever would hold the lock for ever.
	late := &verb.Failure{Reason: verb.ReasonStepFailed, Message: fmt.Sprintf("Windows does not answer within %s", LimitFacts)}
	limited, cancel := context.WithTimeoutCause(ctx, LimitFacts, late)
	defer cancel()
	for _, part := range parts {
		if err := part(limited); err != nil {
			if limited.Err() != nil && ctx.Err() == nil {
				late.Message += ": " + err.Error()
				err = late
			}
			return plan.Facts{}, fmt.Errorf("gather facts: %w", err)
		}
	}
	return g.facts, nil
}

// gatherer collects the facts. The parts are in files of their own, by concern.
type gatherer struct {
	*agent
	spec  nodespec.NodeSpec
	facts plan.Facts
	// payload are the files of all releases on the host by path.
	payload map[string]plan.FileFact
}

func (g *gatherer) system(ctx context.Context) error {
	info, err := g.host.System.Info(ctx)
	if err != nil {
		return fmt.Errorf("ask Windows about the system: %w", err)
	}
	g.facts.System = info
	return nil
}

// own is what the agent knows of itself.
func (g *gatherer) own(ctx context.Context) error {
	sum, err := g.sum(ctx)
	if err != nil {
		return err
	}
	g.facts.Agent = plan.Agent{Version: g.version, Path: g.executable, SHA256: sum}
	if g.facts.Ledger, _, err = g.store.ledger(ctx); err != nil {
		return err
	}
	if g.facts.Applied, err = g.store.applied(ctx); err != nil {
		return err
	}
	fallback, err := g.store.fallback(ctx)
	if err != nil || fallback == nil {
		return err
	}
	g.facts.Fallback = fallback.Digest()
	for _, release := range fallback.Releases {
		g.facts.Kept = append(g.facts.Kept, release.Directory)
	}
	return nil
}

// before is what the agent knows of the spec that the host was to become last. Nobody goes on from one of another release.
func (g *gatherer) before(ctx context.Context) error {
	known, err := g.store.spec(ctx)
	switch {
	case errors.Is(err, errForeignSpec):
		return nil
	case err != nil || known == nil:
		return err
	}
	g.facts.PodSubnet = known.Network.PodSubnet
	return nil
}

// sum is the digest of the agent's own program. It cannot change while it runs.
func (a *agent) sum(ctx context.Context) (string, error) {
	if a.digest == "" {
		sum, err := a.hashFile(ctx, a.executable)
		if err != nil {
			return "", fmt.Errorf("read the agent's own program: %w", err)
		}
		a.digest = sum
	}
	return a.digest, nil
}

// hashFile is the sha256 of a file's content.
func (a *agent) hashFile(ctx context.Context, path string) (string, error) {
	file, err := a.host.Files.Open(ctx, path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
