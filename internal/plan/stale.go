package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// giveBackStale restores objects that were changed for an earlier spec and that this spec does not list. Except for
// releases, directories with foreign content, such as data of pods, remain until the removal. Features and the host
// name remain too, because a change requires a restart of the host.
func (m *maker) giveBackStale() {
	r := &restorer{facts: m.facts, why: "the node does not need it any more"}
	stale := m.stale()
	services := slices.DeleteFunc(r.services(), func(name string) bool { return !stale.services[name] })
	for _, name := range slices.Backward(services) {
		r.endService(name)
	}
	for _, name := range services {
		r.restoreService(name)
	}
	for _, name := range slices.Sorted(maps.Keys(stale.firewall)) {
		r.firewallRule(name)
	}
	for _, name := range slices.Sorted(maps.Keys(stale.environment)) {
		r.variable(name)
	}
	for _, fingerprint := range slices.Sorted(maps.Keys(stale.certificates)) {
		r.trustedCertificate(fingerprint)
	}
	for _, destination := range slices.Sorted(maps.Keys(stale.routes)) {
		r.route(destination)
	}
	for _, exclusion := range m.facts.Ledger.Exclusions {
		if !excluded(m.spec.Exclusions, exclusion) && !runs(m.facts, exclusion) {
			r.exclusion(exclusion)
		}
	}
	var whole []string // directories that are removed with their content
	for _, path := range slices.Sorted(maps.Keys(stale.paths)) {
		switch {
		case slices.ContainsFunc(whole, func(folder string) bool { return nodespec.Within(path, folder) }):
		case nodespec.Within(path, nodespec.ReleasesRoot):
			m.removeRelease(r, path)
		case isOlder(path):
			m.removeOlder(r, path)
		case !m.facts.Files[path].Directory:
			r.path(path)
		case nodespec.Within(path, nodespec.Root) && m.goesWhole(path, stale.paths):
			whole = append(whole, path)
			r.path(path)
		}
	}
	m.steps = append(m.steps, r.steps...)
}

// draftSuffix is the file name suffix of an incomplete write, left on the host after an interruption.
const draftSuffix = ".wmco-tmp"

// goesWhole reports whether a directory created below C:\k contains only stale entries, such as the directory of a
// registry without mirrors. The directory is removed in one step: containerd treats an empty directory as a
// registry without any settings, blocked or not.
func (m *maker) goesWhole(path string, stale map[string]bool) bool {
	fact := m.facts.Files[path]
	// An interrupted write leaves a draft next to the file.
	if final, draft := strings.CutSuffix(path, draftSuffix); draft && !stale[path] {
		return m.goesWhole(final, stale)
	}
	switch {
	case !stale[path] || m.facts.Ledger.Paths[path].Existed:
		return false
	case !fact.Directory || fact.LinkTarget != "":
		return true
	}
	return fact.Listed && !slices.ContainsFunc(fact.Entries, func(name string) bool {
		return !m.goesWhole(path+`\`+name, stale)
	})
}

// removeRelease removes the directory of a former release, unless a process runs from the directory or the rollback
// target needs it. Containers keep their original shim, so the removal may happen long after an upgrade.
func (m *maker) removeRelease(r *restorer, directory string) {
	if slices.ContainsFunc(m.facts.Kept, func(kept string) bool { return nodespec.SamePath(kept, directory) }) {
		return
	}
	for _, service := range m.facts.Services {
		if runsFrom(service, directory) {
			return
		}
	}
	for _, process := range m.facts.Processes {
		if nodespec.Within(process.Path, directory) {
			return
		}
	}
	if _, there := m.facts.Files[directory]; there {
		r.steps = append(r.steps, Step{
			Name: Name(RemovePath{Path: directory}), Operation: RemovePath{Path: directory},
			Reason: "nothing runs from this former release",
		})
	}
}

// named holds names of ledger entries.
type named struct{ services, firewall, environment, certificates, routes, paths map[string]bool }

// stale returns the ledger's entries that the spec does not list, without the operator's own directories.
func (m *maker) stale() named { return unnamed(m.facts.Ledger, m.spec) }

func unnamed(ledger Ledger, spec nodespec.NodeSpec) named {
	wanted := map[string]bool{}
	want := func(kind, name string) { wanted[kind+strings.ToLower(strings.TrimRight(name, `\`))] = true }
	for _, service := range spec.Services {
		want("service ", service.Name)
	}
	for _, rule := range spec.Firewall {
		want("rule ", rule.Name)
	}
	want("rule ", nodespec.RuleSSH) // the operator may need the rule until the host is restored
	for name := range spec.Environment {
		want("variable ", name)
	}
	for _, certificate := range spec.TrustedCertificates {
		want("certificate ", certificate.Fingerprint)
	}
	for _, destination := range spec.Routes {
		want("route ", destination)
	}
	for _, path := range specPaths(spec) {
		want("path ", path)
	}
	return named{
		services:     without(ledger.Services, "service ", wanted),
		firewall:     without(ledger.Firewall, "rule ", wanted),
		environment:  without(ledger.Environment, "variable ", wanted),
		certificates: without(ledger.TrustedCertificates, "certificate ", wanted),
		routes:       without(ledger.Routes, "route ", wanted),
		paths:        without(ledger.Paths, "path ", wanted),
	}
}

func without[V any](entries map[string]V, kind string, wanted map[string]bool) map[string]bool {
	left := map[string]bool{}
	for name := range entries {
		if !wanted[kind+strings.ToLower(strings.TrimRight(name, `\`))] {
			left[name] = true
		}
	}
	return left
}

// specPaths returns all paths of a spec, including the paths common to every spec.
func specPaths(spec nodespec.NodeSpec) []string {
	paths := append([]string{nodespec.Root, nodespec.AgentRoot, nodespec.ReleasesRoot, nodespec.IncomingRoot},
		identityDirectories(spec)...)
	for _, directory := range spec.Directories {
		paths = append(paths, directory.Path)
	}
	for _, release := range spec.Releases {
		paths = append(paths, release.Directory)
	}
	for _, link := range spec.Links {
		paths = append(paths, link.Path)
	}
	for _, file := range spec.Files {
		paths = append(paths, file.Path)
	}
	return paths
}

// IsNamed reports whether a spec contains a path.
func IsNamed(path string, spec nodespec.NodeSpec) bool { return samePathIn(specPaths(spec), path) }

// Paths returns all paths of the ledger and the spec, sorted and without duplicates. The paths of the agent and the
// files of releases are excluded.
func Paths(ledger Ledger, spec nodespec.NodeSpec) []string {
	names := map[string]bool{}
	for _, path := range slices.Concat(recordedPaths(spec), slices.Collect(maps.Keys(ledger.Paths))) {
		if path != "" {
			names[path] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Prune removes the ledger's entries that the spec does not list and that were restored: later changes by other
// programs are foreign.
func Prune(facts Facts, spec nodespec.NodeSpec) Ledger {
	ledger, stale := facts.Ledger, unnamed(facts.Ledger, spec)
	ledger.Services = pruned(facts, ledger.Services, stale.services, func(r *restorer, name string) {
		r.endService(name)
		r.restoreService(name)
	})
	ledger.Firewall = pruned(facts, ledger.Firewall, stale.firewall, (*restorer).firewallRule)
	ledger.Environment = pruned(facts, ledger.Environment, stale.environment, (*restorer).variable)
	ledger.TrustedCertificates = pruned(facts, ledger.TrustedCertificates, stale.certificates, (*restorer).trustedCertificate)
	ledger.Routes = pruned(facts, ledger.Routes, stale.routes, (*restorer).route)
	ledger.Paths = pruned(facts, ledger.Paths, stale.paths, (*restorer).path)
	ledger.Exclusions = slices.DeleteFunc(slices.Clone(ledger.Exclusions), func(exclusion host.Exclusion) bool {
		return !excluded(spec.Exclusions, exclusion) && facts.Antivirus.known() &&
			!excluded(facts.Antivirus.Exclusions, exclusion)
	})
	return ledger
}

// pruned returns entries of the ledger without stale entries that require no restoration.
func pruned[V any](facts Facts, entries map[string]V, stale map[string]bool, restore func(*restorer, string)) map[string]V {
	entries = maps.Clone(entries)
	maps.DeleteFunc(entries, func(name string, _ V) bool {
		return stale[name] && restored(facts, func(r *restorer) { restore(r, name) })
	})
	return entries
}
