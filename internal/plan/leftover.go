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
	there   bool
	daemon  bool     // WICD managed the environment
	known   []string // paths of the spec, and of legacy operators
	folders []string // directories in which only a node creates these paths
}

// findLeftovers finds services that are named like a node's, run from C:\k and are not in the ledger, or files that
// only a legacy operator creates.
func findLeftovers(facts Facts, spec nodespec.NodeSpec) leftovers {
	l := leftovers{known: slices.Concat(recordedPaths(spec), OlderPaths())}
	l.folders = append([]string{nodespec.Root, nodespec.LogRoot, `C:\var\lib\kubelet`, `C:\var\lib\cni`},
		identityDirectories(spec)...)
	for _, service := range spec.Services {
		fact, there := facts.service(service.Name)
		if !there || !leftover(fact) || recordedService(facts.Ledger, service.Name) {
			continue
		}
		l.there = true
		l.daemon = l.daemon || strings.EqualFold(service.Name, nodespec.ServiceAgent)
		if strings.EqualFold(service.Name, "containerd") {
			l.folders = append(l.folders, `C:\ProgramData\containerd`) // with Docker it belongs to no node
		}
	}
	for _, sign := range olderSigns {
		_, there := facts.Files[sign]
		l.there = l.there || there
	}
	return l
}

// leftover reports whether a foreign service runs from C:\k.
func leftover(service host.Service) bool { return Mentions(service.CommandLine, nodespec.Root) }

func recordedService(ledger Ledger, name string) bool {
	return containsFold(slices.Collect(maps.Keys(ledger.Services)), name)
}

// services returns the services of legacy operators that the spec does not list.
func (l leftovers) services(facts Facts, spec nodespec.NodeSpec) []string {
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

// service returns the original state of a service for the ledger; nil for leftovers, which are recorded as missing.
func (l leftovers) service(facts Facts, name string) *host.Service {
	before := pointer(facts.Services, name)
	if before == nil || l.there && leftover(*before) || strings.HasPrefix(before.Description, nodespec.DescriptionPrefix) {
		return nil
	}
	return before
}

// paths returns the paths that legacy operators created, regardless of the spec.
func (l leftovers) paths(facts Facts) []string {
	var paths []string
	if !l.there {
		return nil
	}
	for path := range facts.Files {
		if isOlder(path) || isOlderMirror(path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// path returns the original state of a path for the ledger. A directory that contains only leftovers is recorded as
// missing.
func (l leftovers) path(facts Facts, path string) PathBefore {
	before := pathBefore(facts, path)
	if !l.there || !before.Existed {
		return before
	}
	if l.theirs(path) {
		return PathBefore{}
	}
	_, shared := nodespec.NodesOwn(path, "")
	if !before.Directory || !shared && !nodespec.SamePath(path, nodespec.Root) {
		return before
	}
	before.Entries = slices.DeleteFunc(slices.Clone(before.Entries), func(name string) bool {
		return l.goes(facts, path, name)
	})
	if len(before.Entries) == 0 {
		return PathBefore{}
	}
	return before
}

// goes reports whether an entry of a directory is a leftover.
func (l leftovers) goes(facts Facts, folder, name string) bool {
	path := folder + `\` + name
	if own, _ := nodespec.NodesOwn(folder, name); own || l.theirs(path) {
		return true
	}
	_, shared := nodespec.NodesOwn(path, "")
	_, there := facts.Files[path]
	return shared && there && !l.path(facts, path).Existed
}

// theirs reports whether a path is a leftover: a node's path or a parent directory of a node's path, below
// directories that only legacy operators use.
func (l leftovers) theirs(path string) bool {
	if isOlder(path) || isOlderMirror(path) {
		return true
	}
	if _, shared := nodespec.NodesOwn(path, ""); shared || nodespec.SamePath(path, nodespec.Root) {
		return false
	}
	place := slices.ContainsFunc(l.folders, func(folder string) bool {
		return folder != "" && nodespec.Within(path, folder)
	})
	return place && slices.ContainsFunc(l.known, func(known string) bool { return nodespec.Within(known, path) })
}

// variables returns the variables that WICD set.
func (l leftovers) variables(facts Facts) []string {
	if !l.daemon {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(olderVariables), func(name string) bool {
		_, there := facts.Environment[name]
		return !there
	})
}

// variable returns the original value of a variable for the ledger.
func (l leftovers) variable(facts Facts, name string) *string {
	if l.daemon && containsFold(olderVariables, name) {
		return nil
	}
	return pointer(facts.Environment, name)
}

// addReplaced adds the running services with a program that a link replaces, because a running program cannot be
// replaced. These services are stopped even if a missing certificate prevents a new start.
func (m *maker) addReplaced(stops map[string]string) {
	for _, link := range m.links {
		if fact, there := m.facts.Files[link.Path]; !there || fact.LinkTarget != "" {
			continue
		}
		for _, service := range m.spec.Services {
			if fact, runs := m.running(service.Name); runs && startsProgram(fact, link.Path) {
				stops[strings.ToLower(service.Name)] = "its program " + link.Path + " is replaced"
			}
		}
	}
}

// startsProgram reports whether a service's command line contains the program.
func startsProgram(service host.Service, path string) bool {
	return slices.ContainsFunc([]string{service.CommandLine, service.RunningCommandLine}, func(line string) bool {
		return strings.Contains(strings.ToLower(line), strings.ToLower(path))
	})
}
