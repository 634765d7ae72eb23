package plan

import (
	"maps"
	"slices"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Routes through the adapter of the default route, such as the one to a cloud's metadata service. Windows loses them at
// each boot, and when the HNS network takes that adapter or gives it back: so they are looked for like all else.
// Without a default route there is nothing to lead them through, and they wait for it.

func (m *maker) addRoutes() {
	for _, destination := range m.spec.Routes {
		if !m.facts.NoDefaultRoute && !m.facts.hasRoute(destination) {
			m.add(AddRoute{Destination: destination}, "there is no route to %s through the adapter of the default route",
				destination)
		}
	}
}

// route gives a route back: one that was there before us may be lost with a network of ours.
func (r *restorer) route(destination string) {
	switch before, there := r.facts.Ledger.Routes[destination], r.facts.hasRoute(destination); {
	case r.facts.NoDefaultRoute:
	case !before && there:
		r.add(DeleteRoute{Destination: destination}, false)
	case before && !there:
		r.add(AddRoute{Destination: destination}, false)
	}
}

func (f Facts) hasRoute(destination string) bool { return slices.Contains(f.Routes, destination) }

// NamedRoutes returns the destinations that concern us.
func NamedRoutes(ledger Ledger, spec nodespec.NodeSpec) []string {
	names := slices.Concat(spec.Routes, slices.Collect(maps.Keys(ledger.Routes)))
	slices.Sort(names)
	return slices.Compact(names)
}
