package plan

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// leftovers are what an older operator has left on a host that it did not give back, without a ledger: services of a node that run
// from C:\k, and their programs and configuration. The node takes their place, and a removal takes them away: without their operator
// they are of no use, and their programs would be too large to keep.
type leftovers struct {
	there bool
	own   map[string]bool // paths of the spec's files and links, in lower case
}

// findLeftovers looks for a service that is of a node by its name and runs from C:\k, and that the ledger does not know.
func findLeftovers(facts Facts, spec nodespec.NodeSpec) leftovers {
	l := leftovers{own: map[string]bool{}}
	for _, service := range spec.Services {
		fact, there := facts.service(service.Name)
		if there && leftover(fact) && !recordedService(facts.Ledger, service.Name) {
			l.there = true
		}
	}
	for _, link := range spec.Links {
		l.own[strings.ToLower(link.Path)] = true
	}
	for _, file := range spec.Files {
		l.own[strings.ToLower(file.Path)] = true
	}
	return l
}

// leftover tells whether a service that is not ours runs from our folder.
func leftover(service host.Service) bool { return Mentions(service.CommandLine, nodespec.Root) }

func recordedService(ledger Ledger, name string) bool {
	for known := range ledger.Services {
		if strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}

// service is what is remembered of a service: of a leftover nothing, as if it had not been there.
func (l leftovers) service(facts Facts, name string) *host.Service {
	before := pointer(facts.Services, name)
	if l.there && before != nil && leftover(*before) {
		return nil
	}
	return before
}

// path is what is remembered of a path.
func (l leftovers) path(facts Facts, path string) PathBefore {
	if l.there && l.own[strings.ToLower(path)] && nodespec.Within(path, nodespec.Root) {
		return PathBefore{}
	}
	return pathBefore(facts, path)
}

// addReplaced adds the running services whose program a link takes the place of: a running program cannot be replaced. It does not
// matter that they cannot start again before the node has its certificate.
func (m *maker) addReplaced(stops map[string]string) {
	for _, link := range m.spec.Links {
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

// startsProgram tells whether a service's command line names the program.
func startsProgram(service host.Service, path string) bool {
	return slices.ContainsFunc([]string{service.CommandLine, service.RunningCommandLine}, func(line string) bool {
		return strings.Contains(strings.ToLower(line), strings.ToLower(path))
	})
}
