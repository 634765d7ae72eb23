package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Record adds all objects of the spec that the ledger lacks to the ledger, with the current state from the facts.
// The agent adds the content of existing files.
func Record(facts Facts, spec nodespec.NodeSpec) Ledger {
	l, left := facts.Ledger, findLeftovers(facts, spec)
	l.Removing, l.Refusal, l.RegistrationRefusal, l.InUse = false, nil, nil, nil
	if spec.HostName != "" && l.HostName == "" {
		l.HostName = facts.System.HostName
	}
	features := slices.DeleteFunc(slices.Concat(spec.Features, spec.OptionalFeatures), func(name string) bool {
		return slices.Contains(spec.OptionalFeatures, name) && !isFeatureKnown(facts.Features[name])
	})
	l.Features = addMissing(l.Features, features, func(name string) host.FeatureState { return facts.Features[name] })
	variables := append(slices.Collect(maps.Keys(spec.Environment)), left.foundVariables(facts)...)
	l.Environment = addMissing(l.Environment, variables, func(name string) *string { return left.originalVariable(facts, name) })
	rules := make([]string, len(spec.Firewall))
	for i, rule := range spec.Firewall {
		rules[i] = rule.Name
	}
	l.Firewall = addMissing(l.Firewall, rules, func(name string) *host.FirewallRule { return pointerTo(facts.Firewall, name) })
	services := make([]string, len(spec.Services))
	for i, service := range spec.Services {
		services[i] = service.Name
	}
	services = append(services, left.foundServices(facts, spec)...)
	l.Services = addMissing(l.Services, services, func(name string) *host.Service { return left.originalService(facts, name) })
	paths := append(recordedPaths(spec), left.foundPaths(facts)...)
	l.Paths = addMissing(l.Paths, paths, func(path string) PathBefore { return left.originalPath(facts, path) })
	l.TrustedCertificates = addCertificates(facts, spec, left)
	l.Routes = addMissing(l.Routes, spec.Routes, facts.hasRoute)
	l.Networks = addOwnedNetworks(facts, spec, left.found)
	l.EventSource = recordEventSource(facts, spec)
	l.StaticAddress = recordStaticAddress(facts)
	return RecordLogin(l, facts.Login)
}

// addMissing adds the missing names, ignoring case.
func addMissing[V any](entries map[string]V, names []string, before func(string) V) map[string]V {
	known := map[string]bool{}
	for name := range entries {
		known[strings.ToLower(name)] = true
	}
	result := maps.Clone(entries)
	for _, name := range names {
		if name == "" || known[strings.ToLower(name)] {
			continue
		}
		known[strings.ToLower(name)] = true
		if result == nil {
			result = map[string]V{}
		}
		result[name] = before(name)
	}
	return result
}

func pointerTo[V any](facts map[string]V, name string) *V {
	if value, there := facts[name]; there {
		return &value
	}
	return nil
}

// recordedPaths returns the spec's paths except the paths of the agent, which the operator deletes.
func recordedPaths(spec nodespec.NodeSpec) []string {
	return slices.DeleteFunc(specPaths(spec), func(path string) bool { return nodespec.IsWithin(path, nodespec.AgentRoot) })
}

func pathBefore(facts Facts, path string) PathBefore {
	fact, there := facts.Files[path]
	if !there {
		return PathBefore{}
	}
	before := PathBefore{Existed: true, Directory: fact.Directory, Access: fact.Access, LinkTarget: fact.LinkTarget,
		Entries: fact.Entries}
	if nodespec.IsSamePath(path, nodespec.Root) {
		// Unless the directory has other entries, the operator created it for the agent.
		agent := strings.TrimPrefix(nodespec.AgentRoot, nodespec.Root+`\`)
		before.Entries = slices.DeleteFunc(slices.Clone(fact.Entries), func(entry string) bool {
			return strings.EqualFold(entry, agent)
		})
		if len(before.Entries) == 0 {
			return PathBefore{}
		}
	}
	return before
}

// addOwnedNetworks adds the networks of the spec that do not exist yet. Networks that exist before the node's
// services run are foreign, unless a legacy operator left them.
func addOwnedNetworks(facts Facts, spec nodespec.NodeSpec, left bool) []string {
	networks := slices.Clone(facts.Ledger.Networks)
	for _, name := range spec.Network.OwnedNetworks {
		there := slices.ContainsFunc(facts.Networks, func(n host.HNSNetwork) bool { return strings.EqualFold(n.Name, name) })
		if (!there || left) && !containsFold(networks, name) {
			networks = append(networks, name)
		}
	}
	return networks
}
