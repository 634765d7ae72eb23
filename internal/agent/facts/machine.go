package facts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timing"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

func (g *gatherer) features(ctx context.Context) error {
	g.facts.Features = map[string]host.FeatureState{}
	for _, name := range slices.Concat(g.spec.Features, slices.Sorted(maps.Keys(g.facts.Ledger.Features))) {
		if _, known := g.facts.Features[name]; known {
			continue
		}
		state, err := g.feature(ctx, name)
		if err != nil {
			return err
		}
		g.facts.Features[name] = state
	}
	return nil
}

// featureView is what Windows answered last about its features. To ask takes DISM some seconds and starts Windows'
// servicing, so neither is asked twice for the same facts, nor by the agent's service every minute.
type featureView struct {
	keep   time.Duration // for how long an answer is good; 0: not at all
	states map[string]featureAnswer
}

type featureAnswer struct {
	state   host.FeatureState
	at      time.Time
	pending bool // a restart of Windows was, as after each change of a feature that matters here
}

// feature is how a feature stands.
func (g *gatherer) feature(ctx context.Context, name string) (host.FeatureState, error) {
	if state, known := g.facts.Features[name]; known {
		return state, nil
	}
	view, now := &g.asked, g.Clock.Now()
	pending := g.facts.System.RebootPending
	if answer, known := view.states[name]; known && now.Sub(answer.at) < view.keep && answer.pending == pending {
		return answer.state, nil
	}
	state, err := g.Host.Features.State(ctx, name)
	if err != nil {
		return host.FeatureUnknown, fmt.Errorf("ask for the Windows feature %s: %w", name, err)
	}
	if view.keep > 0 {
		if view.states == nil {
			view.states = map[string]featureAnswer{}
		}
		view.states[name] = featureAnswer{state, now, pending}
	}
	return state, nil
}

// environment takes only variables that the spec or the ledger names: others are not our business.
func (g *gatherer) environment(ctx context.Context) error {
	all, err := g.Host.Environment.Get(ctx)
	if err != nil {
		return fmt.Errorf("read the machine's environment: %w", err)
	}
	names := slices.Concat(slices.Collect(maps.Keys(g.spec.Environment)), slices.Collect(maps.Keys(g.facts.Ledger.Environment)))
	g.facts.Environment = pick(all, append(names, plan.OlderVariables()...))
	return nil
}

func (g *gatherer) firewall(ctx context.Context) error {
	rules, err := g.Host.Firewall.Rules(ctx)
	if err != nil {
		return fmt.Errorf("list the firewall's rules: %w", err)
	}
	all := map[string]host.FirewallRule{}
	for _, rule := range rules {
		all[rule.Name] = rule
	}
	names := slices.Collect(maps.Keys(g.facts.Ledger.Firewall))
	for _, rule := range g.spec.Firewall {
		names = append(names, rule.Name)
	}
	g.facts.Firewall = pick(all, names)
	return nil
}

func (g *gatherer) eventSource(ctx context.Context) (err error) {
	if g.facts.EventSource, err = g.Host.EventLog.KnowsSource(ctx, plan.EventSource); err != nil {
		return fmt.Errorf("ask for the event source %s: %w", plan.EventSource, err)
	}
	return nil
}

// pick takes the named entries, compared without case, under the names asked for.
func pick[V any](all map[string]V, names []string) map[string]V {
	folded := make(map[string]V, len(all))
	for name, value := range all {
		folded[strings.ToLower(name)] = value
	}
	picked := map[string]V{}
	for _, name := range names {
		if value, there := folded[strings.ToLower(name)]; there {
			picked[name] = value
		}
	}
	return picked
}

// services takes those that the spec or the ledger names, and all that were made by this operator or its predecessor.
func (g *gatherer) services(ctx context.Context) error {
	list, err := g.Host.Services.Query(ctx)
	if err != nil {
		return fmt.Errorf("query the services: %w", err)
	}
	all := map[string]host.Service{}
	names := slices.Collect(maps.Keys(g.facts.Ledger.Services))
	for _, service := range g.spec.Services {
		names = append(names, service.Name)
	}
	known := map[string]bool{}
	for _, name := range names {
		known[strings.ToLower(name)] = true
	}
	for _, service := range list {
		all[service.Name] = service
		if strings.HasPrefix(service.Description, nodespec.DescriptionPrefix) && !known[strings.ToLower(service.Name)] {
			names = append(names, service.Name)
		}
	}
	g.facts.Services = pick(all, names)
	return nil
}

// networks asks the Host Networking Service, which comes with containers; a host without them has no networks.
func (g *gatherer) networks(ctx context.Context) error {
	state, err := g.feature(ctx, nodespec.FeatureContainers)
	if err != nil {
		return err
	}
	if state != host.FeatureEnabled && state != host.FeatureDisablePending {
		return nil
	}
	networks, endpoints, err := g.askNetworking(ctx)
	if err != nil && g.Booting && ctx.Err() == nil {
		return nil // hybrid-overlay-node, which wakes it, must not wait for it; until it answers no pod starts
	}
	if err != nil {
		return err
	}
	g.facts.Networks, g.facts.Endpoints = networks, nil
	for _, endpoint := range endpoints {
		// Those of pods come and go.
		if strings.EqualFold(endpoint.Name, g.spec.Network.SourceVIPEndpoint) {
			g.facts.Endpoints = append(g.facts.Endpoints, endpoint)
		}
	}
	return nil
}

func (g *gatherer) askNetworking(ctx context.Context) ([]host.HNSNetwork, []host.HNSEndpoint, error) {
	if g.Booting {
		limited, cancel := context.WithTimeout(ctx, timing.LimitCheck)
		defer cancel()
		ctx = limited
	}
	networks, err := g.Host.Networks.Networks(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list HNS networks: %w", err)
	}
	endpoints, err := g.Host.Networks.Endpoints(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list HNS endpoints: %w", err)
	}
	return networks, endpoints, nil
}

// processes takes those that run from our folders.
func (g *gatherer) processes(ctx context.Context) error {
	list, err := g.Host.Processes.List(ctx)
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, process := range list {
		if ours(g.facts.Ledger, process.Path) {
			g.facts.Processes = append(g.facts.Processes, process)
		}
	}
	return nil
}

func ours(ledger plan.Ledger, path string) bool {
	if nodespec.Within(path, nodespec.Root) {
		return true
	}
	for folder, before := range ledger.Paths {
		if !before.Existed && nodespec.Within(path, folder) {
			return true
		}
	}
	return false
}
