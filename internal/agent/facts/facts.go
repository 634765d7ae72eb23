// Package facts gathers the facts of the host: the complete input of a plan, and whether the host reaches the
// API server and its cloud's metadata service. The package changes nothing, and leaves conclusions to the plan.
package facts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/installdir"
	"github.com/windows-machine-config/wmco/internal/agent/releases"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Source gathers facts of one host. A Source caches expensive Windows queries and therefore lives as long as
// the process.
type Source struct {
	Host      host.Host
	Clock     clock.PassiveClock
	Records   state.Records
	Program   *installdir.Program
	Antivirus Antivirus
	// Booting is true during the node's start after a boot, when the Host Networking Service may not respond
	// yet.
	Booting bool

	featureCache featureCache
}

// Antivirus queries Microsoft Defender Antivirus.
type Antivirus interface {
	// EnableCache caches the result of Facts for the given time.
	EnableCache(answers time.Duration)
	// Facts returns the input for planning exclusions.
	Facts(ctx context.Context, spec nodespec.NodeSpec, ledger plan.Ledger) (plan.AntivirusFacts, error)
	// Check returns an error that names the scanned programs that should be excluded.
	Check(ctx context.Context, spec nodespec.NodeSpec) (string, error)
}

// EnableCaching enables caching of the state of Windows features and Defender.
func (s *Source) EnableCaching() {
	s.featureCache.ttl = timeouts.FeatureCacheTTL
	s.Antivirus.EnableCache(timeouts.AntivirusCacheTTL)
}

// Gather gathers the facts of the host. With a spec, the facts include all objects named by the spec or the
// ledger. Without a spec (nil), only the facts that the operator needs beforehand are gathered.
func (s *Source) Gather(ctx context.Context, spec *nodespec.NodeSpec) (plan.Facts, error) {
	g := &gatherer{Source: s, facts: plan.Facts{Time: s.Clock.Now().UTC()}}
	parts := []func(context.Context) error{g.gatherSystem, g.gatherAgent, g.gatherStoredSpec, g.gatherReleases}
	if spec != nil {
		g.spec = *spec
		parts = append(parts, g.gatherFiles, g.gatherFeatures, g.gatherEnvironment, g.gatherFirewall, g.gatherServices, g.gatherNetworks, g.gatherProcesses, g.gatherIdentities, g.gatherEventSource, g.gatherAntivirus,
			g.gatherTrustedCertificates, g.gatherRoutes, g.gatherStaticAddress)
	}
	// A command that waits forever would hold the lock forever.
	late := &agentapi.Failure{
		Reason: agentapi.ReasonStepFailed, Message: fmt.Sprintf("Windows did not respond within %s", timeouts.FactsTimeout),
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeouts.FactsTimeout, late)
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

// Identities gathers the facts that need no spec, and the state of the spec's identities.
func (s *Source) Identities(ctx context.Context, spec nodespec.NodeSpec) (plan.Facts, error) {
	known, err := s.Gather(ctx, nil)
	if err != nil {
		return known, err
	}
	g := &gatherer{Source: s, spec: spec, facts: known}
	err = g.gatherIdentities(ctx)
	return g.facts, err
}

// GatherWithFeatures gathers the facts that need no spec, and the state of the Windows features required by every node.
func (s *Source) GatherWithFeatures(ctx context.Context) (plan.Facts, error) {
	known, err := s.Gather(ctx, nil)
	if err != nil {
		return known, err
	}
	needed := nodespec.NodeSpec{Features: nodespec.Features(), OptionalFeatures: nodespec.OptionalFeatures()}
	g := &gatherer{Source: s, spec: needed, facts: known}
	err = g.gatherFeatures(ctx)
	return g.facts, err
}

// gatherer collects the facts. The parts are in separate files by concern.
type gatherer struct {
	*Source
	spec  nodespec.NodeSpec
	facts plan.Facts
	found *releases.Found // the releases on the host
}

func (g *gatherer) gatherSystem(ctx context.Context) error {
	info, err := g.Host.System.Info(ctx)
	if err != nil {
		return fmt.Errorf("query Windows system information: %w", err)
	}
	g.facts.System = info
	return nil
}

// gatherAgent gathers the facts of the agent and its records.
func (g *gatherer) gatherAgent(ctx context.Context) error {
	sum, err := g.Program.Sum(ctx, g.Host.Files)
	if err != nil {
		return err
	}
	g.facts.Agent = plan.Agent{Version: g.Program.Version, Path: g.Program.Path, SHA256: sum}
	if g.facts.Ledger, _, err = g.Records.Ledger(ctx); err != nil {
		return err
	}
	return g.gatherAppliedSpecs(ctx)
}

// gatherStoredSpec gathers the readable part of the last desired spec.
func (g *gatherer) gatherStoredSpec(ctx context.Context) error {
	known, err := g.Records.StoredSpec(ctx)
	switch {
	case errors.Is(err, state.ErrForeignSpec):
		return nil
	case err != nil || known == nil:
		return err
	}
	g.facts.NodeName, g.facts.PodSubnet = known.NodeName, known.Network.PodSubnet
	return nil
}

// gatherReleases finds the payload files on the host.
func (g *gatherer) gatherReleases(ctx context.Context) (err error) {
	if g.found, err = releases.Find(ctx, g.Host.Files); err != nil {
		return err
	}
	g.facts.Payload = g.found.Payload
	return nil
}

func (g *gatherer) gatherAntivirus(ctx context.Context) (err error) {
	g.facts.Antivirus, err = g.Antivirus.Facts(ctx, g.spec, g.facts.Ledger)
	return err
}
