package hosttest

import (
	"context"
	"slices"
	"strings"
)

// Routes to addresses reserved for documentation are harmless.
const (
	routeTo      = "198.51.100.77/32"
	routeNetwork = "198.51.100.128/25"
)

// viaDefault lists the routes through the adapter of the default route. On a machine without one, the behavior is not
// run.
func (s *suite) viaDefault() []string {
	list, err := s.Routes.ViaDefault(s.ctx)
	s.requireNoError(err)
	if !slices.Contains(list, "0.0.0.0/0") {
		s.skipBehavior("the machine has no default route")
	}
	return list
}

func (s *suite) borrowRoutes() (before []string) {
	before = s.viaDefault()
	for _, each := range []string{routeTo, routeNetwork} {
		s.atEnd(func(ctx context.Context) error { return s.Routes.Delete(ctx, each) })
	}
	return before
}

func (s *suite) hasRoute(destination string) bool {
	return slices.Contains(s.viaDefault(), destination)
}

func routesBehaviors() []Behavior {
	return []Behavior{
		{"Routes.ViaDefault", "the default route is listed, and each route is listed once", func(s *suite) {
			list := s.viaDefault()
			expectEqual(s, "distinct routes", len(slices.Compact(slices.Sorted(slices.Values(list)))), len(list))
		}},
		{"Routes.ViaDefault", "the machine's own address is among the destinations", func(s *suite) {
			list := s.viaDefault()
			expectEqual(s, "the first address of the machine is among "+strings.Join(list, ", "), slices.Contains(list, s.systemInfo().Addresses[0]+"/32"),
				true)
		}},
		{"Routes.Add", "an added route exists, and adding it again is no error", func(s *suite) {
			before := s.borrowRoutes()
			for range 2 {
				s.requireNoError(s.Routes.Add(s.ctx, routeTo))
				s.requireNoError(s.Routes.Add(s.ctx, routeNetwork))
				expectEqual(s, "the address", s.hasRoute(routeTo), true)
				expectEqual(s, "the network", s.hasRoute(routeNetwork), true)
				expectEqual(s, "routes", len(s.viaDefault()), len(before)+2)
			}
		}},
		{"Routes.Add", "destinations other than IPv4 networks, and the default route, are rejected", func(s *suite) {
			before := s.borrowRoutes()
			for _, bad := range badDestinations() {
				s.expectAnyError("route to "+bad, s.Routes.Add(s.ctx, bad))
			}
			expectEqual(s, "routes", len(s.viaDefault()), len(before))
		}},
		{"Routes.Delete", "deleting a route keeps the others, and deleting it again is no error", func(s *suite) {
			s.borrowRoutes()
			s.requireNoError(s.Routes.Add(s.ctx, routeTo))
			s.requireNoError(s.Routes.Add(s.ctx, routeNetwork))
			before := s.viaDefault()
			for range 2 {
				s.requireNoError(s.Routes.Delete(s.ctx, routeTo))
				expectEqual(s, "the address", s.hasRoute(routeTo), false)
				expectEqual(s, "the network", s.hasRoute(routeNetwork), true)
				expectEqual(s, "routes", len(s.viaDefault()), len(before)-1)
			}
		}},
		{"Routes.Delete", "destinations other than IPv4 networks, and the default route, are rejected", func(s *suite) {
			before := s.borrowRoutes()
			for _, bad := range badDestinations() {
				s.expectAnyError("route to "+bad, s.Routes.Delete(s.ctx, bad))
			}
			expectEqual(s, "routes", len(s.viaDefault()), len(before))
		}},
	}
}

func badDestinations() []string {
	return []string{"", "0.0.0.0/0", "198.51.100.77", "198.51.100.77/24", "198.51.100.77/33", "2001:db8::/64", "a/32"}
}
