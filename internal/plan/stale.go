package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// restoreStale restores objects that were changed for an earlier spec and that this spec does not list. Except for
// releases, directories with foreign content, such as data of pods, remain until the removal. Features and the host
// name remain too, because a change requires a restart of the host.
func (m *planner) restoreStale() {
	r := &restorePlanner{facts: m.facts, why: "the node does not need it anymore"}
	stale := m.staleEntries()
	services := slices.DeleteFunc(r.orderedServiceNames(), func(name string) bool { return !stale.services[name] })
	for _, name := range slices.Backward(services) {
		r.endService(name)
	}
	for _, name := range services {
		r.restoreService(name)
	}
	for _, name := range slices.Sorted(maps.Keys(stale.firewall)) {
		r.restoreFirewallRule(name)
	}
	for _, name := range slices.Sorted(maps.Keys(stale.environment)) {
		r.restoreVariable(name)
	}
	for _, fingerprint := range slices.Sorted(maps.Keys(stale.certificates)) {
		r.restoreTrustedCertificate(fingerprint)
	}
	for _, destination := range slices.Sorted(maps.Keys(stale.routes)) {
		r.restoreRoute(destination)
	}
	for _, exclusion := range m.facts.Ledger.Exclusions {
		if !hasExclusion(m.spec.Exclusions, exclusion) && !isProgramRunning(m.facts, exclusion) {
			r.restoreExclusion(exclusion)
		}
	}
	var whole []string // directories that are removed with their content
	for _, path := range slices.Sorted(maps.Keys(stale.paths)) {
		switch {
		case slices.ContainsFunc(whole, func(folder string) bool { return nodespec.IsWithin(path, folder) }):
		case nodespec.IsWithin(path, nodespec.ReleasesRoot):
			m.removeRelease(r, path)
		case isKnownLegacyPath(path):
			m.removeLegacy(r, path)
		case !m.facts.Files[path].Directory:
			r.restorePath(path)
		case nodespec.IsWithin(path, nodespec.Root) && m.isEntirelyStale(path, stale.paths):
			whole = append(whole, path)
			r.restorePath(path)
		}
	}
	m.steps = append(m.steps, r.steps...)
}

// draftSuffix is the file name suffix of an incomplete write, left on the host after an interruption.
const draftSuffix = ".wmco-tmp"

// isEntirelyStale reports whether a directory created below C:\k contains only stale entries, such as the directory of
// a registry without mirrors. The directory is removed in one step: containerd treats an empty directory as a registry
// without any settings, blocked or not.
func (m *planner) isEntirelyStale(path string, stale map[string]bool) bool {
	fact := m.facts.Files[path]
	// An interrupted write leaves a draft next to the file.
	if final, draft := strings.CutSuffix(path, draftSuffix); draft && !stale[path] {
		return m.isEntirelyStale(final, stale)
	}
	switch {
	case !stale[path] || m.facts.Ledger.Paths[path].Existed:
		return false
	case !fact.Directory || fact.LinkTarget != "":
		return true
	}
	return fact.Listed && !slices.ContainsFunc(fact.Entries, func(name string) bool {
		return !m.isEntirelyStale(path+`\`+name, stale)
	})
}

// removeRelease removes the directory of a former release, unless a process runs from the directory or the rollback
// target needs it. Containers keep their original shim, so the removal may happen long after an upgrade.
func (m *planner) removeRelease(r *restorePlanner, directory string) {
	if slices.ContainsFunc(m.facts.RollbackReleases, func(kept string) bool { return nodespec.IsSamePath(kept, directory) }) {
		return
	}
	for _, service := range m.facts.Services {
		if isRunFrom(service, directory) {
			return
		}
	}
	for _, process := range m.facts.Processes {
		if nodespec.IsWithin(process.Path, directory) {
			return
		}
	}
	if _, there := m.facts.Files[directory]; there {
		r.steps = append(r.steps, Step{
			Name: Name(RemovePath{Path: directory}), Operation: RemovePath{Path: directory},
			Reason: "no process uses this previous release",
		})
	}
}

// ledgerNames holds names of ledger entries.
type ledgerNames struct{ services, firewall, environment, certificates, routes, paths map[string]bool }

// staleEntries returns the ledger's entries that the spec does not list, without the operator's own directories.
func (m *planner) staleEntries() ledgerNames { return unlistedEntries(m.facts.Ledger, m.spec) }

func unlistedEntries(ledger Ledger, spec nodespec.NodeSpec) ledgerNames {
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
	return ledgerNames{
		services:     unlistedNames(ledger.Services, "service ", wanted),
		firewall:     unlistedNames(ledger.Firewall, "rule ", wanted),
		environment:  unlistedNames(ledger.Environment, "variable ", wanted),
		certificates: unlistedNames(ledger.TrustedCertificates, "certificate ", wanted),
		routes:       unlistedNames(ledger.Routes, "route ", wanted),
		paths:        unlistedNames(ledger.Paths, "path ", wanted),
	}
}

func unlistedNames[V any](entries map[string]V, kind string, wanted map[string]bool) map[string]bool {
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
func IsNamed(path string, spec nodespec.NodeSpec) bool { return hasPath(specPaths(spec), path) }

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
	ledger, stale := facts.Ledger, unlistedEntries(facts.Ledger, spec)
	ledger.Services = pruneEntries(facts, ledger.Services, stale.services, func(r *restorePlanner, name string) {
		r.endService(name)
		r.restoreService(name)
	})
	ledger.Firewall = pruneEntries(facts, ledger.Firewall, stale.firewall, (*restorePlanner).restoreFirewallRule)
	ledger.Environment = pruneEntries(facts, ledger.Environment, stale.environment, (*restorePlanner).restoreVariable)
	ledger.TrustedCertificates = pruneEntries(facts, ledger.TrustedCertificates, stale.certificates, (*restorePlanner).restoreTrustedCertificate)
	ledger.Routes = pruneEntries(facts, ledger.Routes, stale.routes, (*restorePlanner).restoreRoute)
	ledger.Paths = pruneEntries(facts, ledger.Paths, stale.paths, (*restorePlanner).restorePath)
	ledger.Exclusions = slices.DeleteFunc(slices.Clone(ledger.Exclusions), func(exclusion host.Exclusion) bool {
		return !hasExclusion(spec.Exclusions, exclusion) && facts.Antivirus.isKnown() &&
			!hasExclusion(facts.Antivirus.Exclusions, exclusion)
	})
	return ledger
}

// pruneEntries returns entries of the ledger without stale entries that require no restoration.
func pruneEntries[V any](facts Facts, entries map[string]V, stale map[string]bool, restore func(*restorePlanner, string)) map[string]V {
	entries = maps.Clone(entries)
	maps.DeleteFunc(entries, func(name string, _ V) bool {
		return stale[name] && isRestored(facts, func(r *restorePlanner) { restore(r, name) })
	})
	return entries
}
