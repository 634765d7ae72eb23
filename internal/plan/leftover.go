package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// leftovers are the remains of a legacy operator on a host without a ledger that was not restored: a node's
// services below C:\k, with programs and configuration. The new node replaces these leftovers, and a removal
// deletes them. Without the legacy operator they are useless, and the programs would be too large to keep.
type leftovers struct {
	found       bool
	daemon      bool     // WICD managed the environment
	known       []string // paths of the spec, and of legacy operators
	directories []string // directories in which only a node creates these paths
}

// findLeftovers finds services that are named like a node's, run from C:\k and are not in the ledger, or files that
// only a legacy operator creates.
func findLeftovers(facts Facts, spec nodespec.NodeSpec) leftovers {
	l := leftovers{known: slices.Concat(recordedPaths(spec), LegacyPaths())}
	l.directories = append([]string{nodespec.Root, nodespec.LogRoot, `C:\var\lib\kubelet`, `C:\var\lib\cni`},
		identityDirectories(spec)...)
	for _, service := range spec.Services {
		fact, there := facts.findService(service.Name)
		if !there || !isLeftover(fact) || hasRecordedService(facts.Ledger, service.Name) {
			continue
		}
		l.found = true
		l.daemon = l.daemon || strings.EqualFold(service.Name, nodespec.ServiceAgent)
		if strings.EqualFold(service.Name, "containerd") {
			l.directories = append(l.directories, `C:\ProgramData\containerd`) // with Docker it belongs to no node
		}
	}
	for _, sign := range legacyMarkers {
		_, there := facts.Files[sign]
		l.found = l.found || there
	}
	return l
}

// isLeftover reports whether a service, which the ledger does not list, runs from C:\k.
func isLeftover(service host.Service) bool { return HasProgramIn(service.CommandLine, nodespec.Root) }

func hasRecordedService(ledger Ledger, name string) bool {
	return containsFold(slices.Collect(maps.Keys(ledger.Services)), name)
}

// foundServices returns the services of legacy operators that the spec does not list.
func (l leftovers) foundServices(facts Facts, spec nodespec.NodeSpec) []string {
	var names []string
	for name, service := range facts.Services {
		named := slices.ContainsFunc(spec.Services, func(wanted nodespec.Service) bool {
			return strings.EqualFold(wanted.Name, name)
		})
		if !named && strings.HasPrefix(service.Description, nodespec.DescriptionPrefix) {
			names = append(names, name)
		}
	}
	return names
}

// originalService returns the original state of a service for the ledger; nil for leftovers, which are recorded as
// missing.
func (l leftovers) originalService(facts Facts, name string) *host.Service {
	before := pointerTo(facts.Services, name)
	if before == nil || l.found && isLeftover(*before) || strings.HasPrefix(before.Description, nodespec.DescriptionPrefix) {
		return nil
	}
	return before
}

// foundPaths returns the paths that legacy operators created, regardless of the spec.
func (l leftovers) foundPaths(facts Facts) []string {
	var paths []string
	if !l.found {
		return nil
	}
	for path := range facts.Files {
		if isKnownLegacyPath(path) || isLegacyMirror(path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// originalPath returns the original state of a path for the ledger. A directory that contains only leftovers is
// recorded as missing.
func (l leftovers) originalPath(facts Facts, path string) PathBefore {
	before := pathBefore(facts, path)
	if !l.found || !before.Existed {
		return before
	}
	if l.isLegacyPath(path) {
		return PathBefore{}
	}
	_, shared := nodespec.EntryOwnership(path, "")
	if !before.Directory || !shared && !nodespec.IsSamePath(path, nodespec.Root) {
		return before
	}
	before.Entries = slices.DeleteFunc(slices.Clone(before.Entries), func(name string) bool {
		return l.isLegacyEntry(facts, path, name)
	})
	if len(before.Entries) == 0 {
		return PathBefore{}
	}
	return before
}

// isLegacyEntry reports whether an entry of a directory is a leftover.
func (l leftovers) isLegacyEntry(facts Facts, folder, name string) bool {
	path := folder + `\` + name
	if own, _ := nodespec.EntryOwnership(folder, name); own || l.isLegacyPath(path) {
		return true
	}
	_, shared := nodespec.EntryOwnership(path, "")
	_, there := facts.Files[path]
	return shared && there && !l.originalPath(facts, path).Existed
}

// isLegacyPath reports whether a path is a leftover: a node's path or a parent directory of a node's path, within
// directories in which only a node creates such paths.
func (l leftovers) isLegacyPath(path string) bool {
	if isKnownLegacyPath(path) || isLegacyMirror(path) {
		return true
	}
	if _, shared := nodespec.EntryOwnership(path, ""); shared || nodespec.IsSamePath(path, nodespec.Root) {
		return false
	}
	place := slices.ContainsFunc(l.directories, func(folder string) bool {
		return folder != "" && nodespec.IsWithin(path, folder)
	})
	return place && slices.ContainsFunc(l.known, func(known string) bool { return nodespec.IsWithin(known, path) })
}

// foundVariables returns the variables that WICD set.
func (l leftovers) foundVariables(facts Facts) []string {
	if !l.daemon {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(legacyVariables), func(name string) bool {
		_, there := facts.Environment[name]
		return !there
	})
}

// originalVariable returns the original value of a variable for the ledger.
func (l leftovers) originalVariable(facts Facts, name string) *string {
	if l.daemon && containsFold(legacyVariables, name) {
		return nil
	}
	return pointerTo(facts.Environment, name)
}

// addReplaced adds the running services with a program that a link replaces, because a running program cannot be
// replaced. These services are stopped even if a missing certificate prevents a new start.
func (m *planner) addReplaced(stops map[string]string) {
	for _, link := range m.links {
		if fact, there := m.facts.Files[link.Path]; !there || fact.LinkTarget != "" {
			continue
		}
		for _, service := range m.spec.Services {
			if fact, runs := m.runningService(service.Name); runs && hasProgram(fact, link.Path) {
				stops[strings.ToLower(service.Name)] = "its program " + link.Path + " is replaced"
			}
		}
	}
}

// hasProgram reports whether a service's command line contains the program.
func hasProgram(service host.Service, path string) bool {
	return slices.ContainsFunc([]string{service.CommandLine, service.RunningCommandLine}, func(line string) bool {
		return strings.Contains(strings.ToLower(line), strings.ToLower(path))
	})
}
