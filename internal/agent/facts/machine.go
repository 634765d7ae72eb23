package facts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

func (g *gatherer) gatherFeatures(ctx context.Context) error {
	g.facts.Features = map[string]host.FeatureState{}
	recorded := slices.Sorted(maps.Keys(g.facts.Ledger.Features))
	for _, name := range slices.Concat(g.spec.Features, g.spec.OptionalFeatures, recorded) {
		if _, known := g.facts.Features[name]; known {
			continue
		}
		state, err := g.queryFeature(ctx, name)
		if err != nil {
			return err
		}
		g.facts.Features[name] = state
	}
	return nil
}

// featureCache caches the state of Windows features. A query takes DISM several seconds and starts Windows
// servicing. Therefore each feature is queried once per facts, and not every minute by the agent's service.
type featureCache struct {
	unknown map[string]bool // names unknown to this Windows, which do not change
	ttl     time.Duration   // validity of a state; 0 disables caching
	states  map[string]featureAnswer
}

type featureAnswer struct {
	state   host.FeatureState
	at      time.Time
	pending bool // a restart of Windows was pending, as after each relevant change of a feature
}

func (g *gatherer) queryFeature(ctx context.Context, name string) (host.FeatureState, error) {
	if state, known := g.facts.Features[name]; known {
		return state, nil
	}
	view, now := &g.featureCache, g.Clock.Now()
	if view.unknown[name] {
		return host.FeatureUnknown, nil
	}
	pending := g.facts.System.RebootPending
	if answer, known := view.states[name]; known && now.Sub(answer.at) < view.ttl && answer.pending == pending {
		return answer.state, nil
	}
	state, err := g.Host.Features.State(ctx, name)
	if err != nil {
		return host.FeatureUnknown, fmt.Errorf("query the Windows feature %s: %w", name, err)
	}
	if state == host.FeatureUnknown {
		if view.unknown == nil {
			view.unknown = map[string]bool{}
		}
		view.unknown[name] = true
	}
	if view.ttl > 0 {
		if view.states == nil {
			view.states = map[string]featureAnswer{}
		}
		view.states[name] = featureAnswer{state, now, pending}
	}
	return state, nil
}

// gatherEnvironment reads only the variables named by the spec or the ledger, and those that legacy operators set:
// other variables are out of scope.
func (g *gatherer) gatherEnvironment(ctx context.Context) error {
	all, err := g.Host.Environment.Get(ctx)
	if err != nil {
		return fmt.Errorf("read the machine's environment: %w", err)
	}
	names := slices.Concat(slices.Collect(maps.Keys(g.spec.Environment)), slices.Collect(maps.Keys(g.facts.Ledger.Environment)))
	g.facts.Environment = selectNamed(all, append(names, plan.LegacyVariables()...))
	return nil
}

func (g *gatherer) gatherFirewall(ctx context.Context) error {
	rules, err := g.Host.Firewall.Rules(ctx)
	if err != nil {
		return fmt.Errorf("list firewall rules: %w", err)
	}
	all := map[string]host.FirewallRule{}
	for _, rule := range rules {
		all[rule.Name] = rule
	}
	names := slices.Collect(maps.Keys(g.facts.Ledger.Firewall))
	for _, rule := range g.spec.Firewall {
		names = append(names, rule.Name)
	}
	g.facts.Firewall = selectNamed(all, names)
	return nil
}

func (g *gatherer) gatherEventSource(ctx context.Context) (err error) {
	if g.facts.EventSource, err = g.Host.EventLog.HasSource(ctx, plan.EventSource); err != nil {
		return fmt.Errorf("query the event source %s: %w", plan.EventSource, err)
	}
	return nil
}

// selectNamed selects the named entries, compared case-insensitively, with the requested names as keys.
func selectNamed[V any](all map[string]V, names []string) map[string]V {
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

// gatherServices selects the services named by the spec or the ledger, and all services created by this or the legacy
// operator.
func (g *gatherer) gatherServices(ctx context.Context) error {
	list, err := g.Host.Services.Query(ctx)
	if err != nil {
		return fmt.Errorf("list services: %w", err)
	}
	all := map[string]host.Service{}
	names := slices.Collect(maps.Keys(g.facts.Ledger.Services))
	names = slices.AppendSeq(names, maps.Keys(g.facts.Ledger.StartTypes))
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
	g.facts.Services = selectNamed(all, names)
	g.facts.Login, err = g.findLogin(ctx, list)
	return err
}

// FindLogin finds the service through which the operator logs in.
func (s *Source) FindLogin(ctx context.Context) (plan.LoginFacts, error) {
	services, err := s.Host.Services.Query(ctx)
	if err != nil {
		return plan.LoginFacts{}, fmt.Errorf("list services: %w", err)
	}
	return s.findLogin(ctx, services)
}

func (s *Source) findLogin(ctx context.Context, services []host.Service) (plan.LoginFacts, error) {
	processes, err := s.Host.Processes.List(ctx)
	if err != nil {
		return plan.LoginFacts{}, fmt.Errorf("list processes: %w", err)
	}
	return plan.FindLogin(s.Host.Processes.Self(), processes, services), nil
}

// gatherNetworks queries the Host Networking Service, a part of the Containers feature; without the feature there are
// no networks.
func (g *gatherer) gatherNetworks(ctx context.Context) error {
	state, err := g.queryFeature(ctx, nodespec.FeatureContainers)
	if err != nil {
		return err
	}
	if state != host.FeatureEnabled && state != host.FeatureDisablePending {
		return nil
	}
	if err := g.gatherNetworkServices(ctx); err != nil {
		return err
	}
	networks, endpoints, err := g.queryNetworking(ctx)
	if err != nil && g.canIgnoreSilence() && ctx.Err() == nil {
		// Starting HNS, and hybrid-overlay-node, which wakes HNS, must not wait for HNS. Until HNS responds, no
		// pod starts.
		g.facts.HNSSilent = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	g.facts.Networks, g.facts.Endpoints = networks, nil
	for _, endpoint := range endpoints {
		// Endpoints of pods are not relevant.
		if strings.EqualFold(endpoint.Name, g.spec.Network.SourceVIPEndpoint) {
			g.facts.Endpoints = append(g.facts.Endpoints, endpoint)
			if err := g.gatherRegistration(ctx, endpoint); err != nil {
				return err
			}
		}
	}
	return nil
}

// gatherNetworkServices queries the Windows services for networks.
func (g *gatherer) gatherNetworkServices(ctx context.Context) error {
	found, err := g.Host.Services.Query(ctx, nodespec.ServiceHNS, nodespec.ServiceVFP)
	if err != nil {
		return fmt.Errorf("query the services of HNS: %w", err)
	}
	g.facts.HNS = map[string]host.Service{}
	for _, service := range found {
		g.facts.HNS[strings.ToLower(service.Name)] = service
	}
	return nil
}

// canIgnoreSilence reports whether the Host Networking Service may be silent: the node starts, or
// hybrid-overlay-node does not run, without which there is no network. Otherwise a short silence must not be
// taken for a missing network, because the repair would disrupt pods.
func (g *gatherer) canIgnoreSilence() bool {
	overlay := g.facts.Services[nodespec.ServiceHybridOverlay]
	return g.Booting || overlay.State != host.ServiceRunning
}

// gatherStaticAddress reads the registry value for static addresses.
func (g *gatherer) gatherStaticAddress(ctx context.Context) error {
	value, err := g.Host.Registry.Number(ctx, plan.DevicelessName())
	switch {
	case errors.Is(err, host.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	g.facts.DevicelessDisabled = &value
	return nil
}

func (g *gatherer) queryNetworking(ctx context.Context) ([]host.HNSNetwork, []host.HNSEndpoint, error) {
	if g.canIgnoreSilence() {
		limited, cancel := context.WithTimeout(ctx, timeouts.CheckTimeout)
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

// gatherProcesses selects the processes that run from the operator's directories.
func (g *gatherer) gatherProcesses(ctx context.Context) error {
	list, err := g.Host.Processes.List(ctx)
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	kubelet := g.facts.Services[nodespec.ServiceKubelet].PID
	for _, process := range list {
		if isOperatorPath(g.facts.Ledger, process.Path) {
			g.facts.Processes = append(g.facts.Processes, process)
		}
		if kubelet != 0 && process.PID == kubelet && !process.Started.After(g.facts.Time) {
			g.facts.KubeletStarted = process.Started
		}
	}
	return nil
}

func isOperatorPath(ledger plan.Ledger, path string) bool {
	if nodespec.IsWithin(path, nodespec.Root) {
		return true
	}
	for folder, before := range ledger.Paths {
		if !before.Existed && nodespec.IsWithin(path, folder) {
			return true
		}
	}
	return false
}
