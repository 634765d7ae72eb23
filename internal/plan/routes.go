package plan

import (
	"maps"
	"slices"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Routes through the adapter of the default route, such as the route to a cloud's metadata service. Windows removes
// these routes at each boot, and when the HNS network acquires or releases the adapter, so missing routes are
// drift. Without a default route, no routes are added.

func (m *planner) addRoutes() {
	for _, destination := range m.spec.Routes {
		if !m.facts.NoDefaultRoute && !m.facts.hasRoute(destination) {
			m.addOperation(AddRoute{Destination: destination}, "there is no route to %s through the adapter of the default route",
				destination)
		}
	}
}

// restoreRoute restores a route. A route that existed originally may be lost with an HNS network of the node.
func (r *restorePlanner) restoreRoute(destination string) {
	switch before, there := r.facts.Ledger.Routes[destination], r.facts.hasRoute(destination); {
	case r.facts.NoDefaultRoute:
	case !before && there:
		r.addStep(DeleteRoute{Destination: destination}, false)
	case before && !there:
		r.addStep(AddRoute{Destination: destination}, false)
	}
}

func (f Facts) hasRoute(destination string) bool { return slices.Contains(f.Routes, destination) }

// NamedRoutes returns the destinations in the spec or the ledger.
func NamedRoutes(ledger Ledger, spec nodespec.NodeSpec) []string {
	names := slices.Concat(spec.Routes, slices.Collect(maps.Keys(ledger.Routes)))
	slices.Sort(names)
	return slices.Compact(names)
}
