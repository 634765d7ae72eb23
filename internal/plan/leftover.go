package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// leftovers are what an older operator has left on a host that it did not give back, without a ledger: services of a
// node that run from C:\k, and their programs and configuration. The node takes their place, and a removal takes them
// away: without their operator they are of no use, and their programs would be too large to keep.
type leftovers struct {
	there   bool
	daemon  bool     // WICD held the environment
	known   []string // places of the spec, and of older operators
	folders []string // where none but a node puts such places
}

// findLeftovers looks for a service that is of a node by its name and runs from C:\k, and that the ledger does not
// know, or for a file that only an older operator has.
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
			l.folders = append(l.folders, `C:\ProgramData\containerd`) // with Docker it is not a node's
		}
	}
	for _, sign := range olderSigns {
		_, there := facts.Files[sign]
		l.there = l.there || there
	}
	return l
}

// leftover reports whether a service that is not ours runs from our folder.
func leftover(service host.Service) bool { return Mentions(service.CommandLine, nodespec.Root) }

func recordedService(ledger Ledger, name string) bool {
	return containsFold(slices.Collect(maps.Keys(ledger.Services)), name)
}

// services returns those that an older operator made and the spec does not name.
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

// service is what is remembered of a service: of a leftover nothing, as if it had not been there.
func (l leftovers) service(facts Facts, name string) *host.Service {
	before := pointer(facts.Services, name)
	if before == nil || l.there && leftover(*before) || strings.HasPrefix(before.Description, nodespec.DescriptionPrefix) {
		return nil
	}
	return before
}

// paths returns those that older operators have left, whatever the spec names.
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

// path is what is remembered of a path. A folder in which nothing but leftovers lies was made for them.
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

// goes reports whether an entry of a folder is a leftover.
func (l leftovers) goes(facts Facts, folder, name string) bool {
	path := folder + `\` + name
	if own, _ := nodespec.NodesOwn(folder, name); own || l.theirs(path) {
		return true
	}
	_, shared := nodespec.NodesOwn(path, "")
	_, there := facts.Files[path]
	return shared && there && !l.path(facts, path).Existed
}

// theirs reports whether what lies at a path is a leftover: it is, or holds, a place of a node, where none but older
// operators put anything.
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

// variables returns those that WICD has set.
func (l leftovers) variables(facts Facts) []string {
	if !l.daemon {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(olderVariables), func(name string) bool {
		_, there := facts.Environment[name]
		return !there
	})
}

// variable is what is remembered of a variable.
func (l leftovers) variable(facts Facts, name string) *string {
	if l.daemon && containsFold(olderVariables, name) {
		return nil
	}
	return pointer(facts.Environment, name)
}

// addReplaced adds the running services whose program a link takes the place of: a running program cannot be replaced.
// It does not matter that they cannot start again before the node has its certificate.
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

// startsProgram reports whether a service's command line names the program.
func startsProgram(service host.Service, path string) bool {
	return slices.ContainsFunc([]string{service.CommandLine, service.RunningCommandLine}, func(line string) bool {
		return strings.Contains(strings.ToLower(line), strings.ToLower(path))
	})
}
