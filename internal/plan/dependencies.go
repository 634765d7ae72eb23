package plan

import (
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// inOrder sorts names so that each name comes after its dependencies, and otherwise keeps the given order.
// Dependencies not in the list are ignored. In a cycle, which no service control manager starts anyway, the first
// given name comes first.
func inOrder(names []string, dependencies func(name string) []string) []string {
	var ordered []string
	given := map[string]string{}
	for _, name := range names {
		given[strings.ToLower(name)] = name
	}
	visited := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if visited[strings.ToLower(name)] {
			return
		}
		visited[strings.ToLower(name)] = true
		for _, dependency := range dependencies(name) {
			if known, ok := given[strings.ToLower(dependency)]; ok {
				visit(known)
			}
		}
		ordered = append(ordered, name)
	}
	for _, name := range names {
		visit(name)
	}
	return ordered
}

// findService returns the facts of a service by name, ignoring case.
func (f Facts) findService(name string) (host.Service, bool) {
	if service, ok := f.Services[name]; ok {
		return service, true
	}
	for known, service := range f.Services {
		if strings.EqualFold(known, name) {
			return service, true
		}
	}
	return host.Service{}, false
}
