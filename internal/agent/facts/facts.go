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
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
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

	asked featureView
}

// Antivirus queries Microsoft Defender Antivirus.
type Antivirus interface {
	// Keep caches the result of Facts for the given time.
	Keep(answers time.Duration)
	// Facts returns the input for planning exclusions.
	Facts(ctx context.Context, spec nodespec.NodeSpec, ledger plan.Ledger) (plan.AntivirusFacts, error)
	// Check returns an error that names the scanned programs that should be excluded.
	Check(ctx context.Context, spec nodespec.NodeSpec) (string, error)
}

// KeepAnswers caches the state of Windows features and Defender.
func (s *Source) KeepAnswers() {
	s.asked.keep = timeouts.FeatureCheck
	s.Antivirus.Keep(timeouts.AntivirusCheck)
}

// Gather gathers the facts of the host. With a spec, the facts include all objects named by the spec or the
// ledger. Without a spec (nil), only the facts that the operator needs beforehand are gathered.
func (s *Source) Gather(ctx context.Context, spec *nodespec.NodeSpec) (plan.Facts, error) {
	g := &gatherer{Source: s, facts: plan.Facts{Time: s.Clock.Now().UTC()}}
	parts := []func(context.Context) error{g.system, g.own, g.before, g.releases}
	if spec != nil {
		g.spec = *spec
		parts = append(parts, g.files, g.features, g.environment, g.firewall, g.services, g.networks, g.processes, g.identities, g.eventSource, g.antivirus,
			g.trustedCertificates, g.routes, g.staticAddress)
	}
	// A command that waits forever would hold the lock forever.
	late := &verb.Failure{
		Reason: verb.ReasonStepFailed, Message: fmt.Sprintf("Windows does not answer within %s", timeouts.LimitFacts),
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeouts.LimitFacts, late)
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
	err = g.identities(ctx)
	return g.facts, err
}

// Look gathers the facts that need no spec, and the state of the Windows features required by every node.
func (s *Source) Look(ctx context.Context) (plan.Facts, error) {
	known, err := s.Gather(ctx, nil)
	if err != nil {
		return known, err
	}
	needed := nodespec.NodeSpec{Features: nodespec.Features(), OptionalFeatures: nodespec.OptionalFeatures()}
	g := &gatherer{Source: s, spec: needed, facts: known}
	err = g.features(ctx)
	return g.facts, err
}

// gatherer collects the facts. The parts are in separate files by concern.
type gatherer struct {
	*Source
	spec  nodespec.NodeSpec
	facts plan.Facts
	found *releases.Found // the releases on the host
}

func (g *gatherer) system(ctx context.Context) error {
	info, err := g.Host.System.Info(ctx)
	if err != nil {
		return fmt.Errorf("query Windows system information: %w", err)
	}
	g.facts.System = info
	return nil
}

// own gathers the facts of the agent and its records.
func (g *gatherer) own(ctx context.Context) error {
	sum, err := g.Program.Sum(ctx, g.Host.Files)
	if err != nil {
		return err
	}
	g.facts.Agent = plan.Agent{Version: g.Program.Version, Path: g.Program.Path, SHA256: sum}
	if g.facts.Ledger, _, err = g.Records.Ledger(ctx); err != nil {
		return err
	}
	return g.specs(ctx)
}

// before gathers the readable part of the last desired spec.
func (g *gatherer) before(ctx context.Context) error {
	known, err := g.Records.Held(ctx)
	switch {
	case errors.Is(err, state.ErrForeignSpec):
		return nil
	case err != nil || known == nil:
		return err
	}
	g.facts.NodeName, g.facts.PodSubnet = known.NodeName, known.Network.PodSubnet
	return nil
}

// releases finds the payload files on the host.
func (g *gatherer) releases(ctx context.Context) (err error) {
	if g.found, err = releases.Find(ctx, g.Host.Files); err != nil {
		return err
	}
	g.facts.Payload = g.found.Payload
	return nil
}

func (g *gatherer) antivirus(ctx context.Context) (err error) {
	g.facts.Antivirus, err = g.Antivirus.Facts(ctx, g.spec, g.facts.Ledger)
	return err
}
