// Package facts finds out what the host is: everything that a plan is made of, and whether the host reaches the API server
// and its cloud's metadata service. It changes nothing, and draws no conclusions: those are the plan's.
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

// Source tells facts of one host. It remembers answers that cost Windows much, and so is kept for as long as the
// process runs.
type Source struct {
	Host      host.Host
	Clock     clock.PassiveClock
	Records   state.Records
	Program   *installdir.Program
	Antivirus Antivirus
	// Booting says that the node's start after a boot is under way: the Host Networking Service need not answer yet.
	Booting bool

	asked featureView
}

// Antivirus answers questions about Microsoft Defender Antivirus.
type Antivirus interface {
	// Keep has an answer of Facts be good for some time.
	Keep(answers time.Duration)
	// Facts are those that a plan about exclusions is made of.
	Facts(ctx context.Context, spec nodespec.NodeSpec, ledger plan.Ledger) (plan.AntivirusFacts, error)
	// Check returns an error that names what is scanned although it should not be.
	Check(ctx context.Context, spec nodespec.NodeSpec) (string, error)
}

// KeepAnswers has answers about Windows' features and about Defender be good for some time.
func (s *Source) KeepAnswers() {
	s.asked.keep = timeouts.FeatureCheck
	s.Antivirus.Keep(timeouts.AntivirusCheck)
}

// Gather finds out what the host is. With a spec, everything that the spec or the ledger names is looked at; without
// one (nil) only what the operator needs to know beforehand.
func (s *Source) Gather(ctx context.Context, spec *nodespec.NodeSpec) (plan.Facts, error) {
	g := &gatherer{Source: s, facts: plan.Facts{Time: s.Clock.Now().UTC()}}
	parts := []func(context.Context) error{g.system, g.own, g.before, g.releases}
	if spec != nil {
		g.spec = *spec
		parts = append(parts, g.files, g.features, g.environment, g.firewall, g.services, g.networks, g.processes, g.identities, g.eventSource, g.antivirus,
			g.trustedCertificates, g.routes, g.staticAddress)
	}
	// A verb that waits forever would hold the lock forever.
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

// Identities finds out what is known without a spec, and how the spec's identities stand.
func (s *Source) Identities(ctx context.Context, spec nodespec.NodeSpec) (plan.Facts, error) {
	known, err := s.Gather(ctx, nil)
	if err != nil {
		return known, err
	}
	g := &gatherer{Source: s, spec: spec, facts: known}
	err = g.identities(ctx)
	return g.facts, err
}

// Look finds out what is known without a spec, and how the Windows features are that every node needs.
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

// gatherer collects the facts. The parts are in files of their own, by concern.
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

// own is what the agent knows of itself.
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

// before is what the agent can read of the spec that the host was to become last.
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

// antivirus looks at Microsoft Defender Antivirus.
func (g *gatherer) antivirus(ctx context.Context) (err error) {
	g.facts.Antivirus, err = g.Antivirus.Facts(ctx, g.spec, g.facts.Ledger)
	return err
}
