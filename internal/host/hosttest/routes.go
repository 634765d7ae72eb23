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
	s.must(err)
	if !slices.Contains(list, "0.0.0.0/0") {
		s.notHere("the machine has no default route")
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

func (s *suite) routed(destination string) bool { return slices.Contains(s.viaDefault(), destination) }

func routesBehaviors() []Behavior {
	return []Behavior{
		{"Routes.ViaDefault", "the default route is among the routes, each of which is there once", func(s *suite) {
			list := s.viaDefault()
			is(s, "different ones", len(slices.Compact(slices.Sorted(slices.Values(list)))), len(list))
		}},
		{"Routes.ViaDefault", "the machine's own address is among the routes", func(s *suite) {
			list := s.viaDefault()
			is(s, "its first address is among "+strings.Join(list, ", "), slices.Contains(list, s.info().Addresses[0]+"/32"),
				true)
		}},
		{"Routes.Add", "an added route is there, also when it is added again", func(s *suite) {
			before := s.borrowRoutes()
			for range 2 {
				s.must(s.Routes.Add(s.ctx, routeTo))
				s.must(s.Routes.Add(s.ctx, routeNetwork))
				is(s, "the address", s.routed(routeTo), true)
				is(s, "the network", s.routed(routeNetwork), true)
				is(s, "routes", len(s.viaDefault()), len(before)+2)
			}
		}},
		{"Routes.Add", "what is no IPv4 network, and the default route, are refused", func(s *suite) {
			before := s.borrowRoutes()
			for _, bad := range badDestinations() {
				s.refused("route to "+bad, s.Routes.Add(s.ctx, bad))
			}
			is(s, "routes", len(s.viaDefault()), len(before))
		}},
		{"Routes.Delete", "a deleted route is gone and leaves the others, and deleting it again is no error", func(s *suite) {
			s.borrowRoutes()
			s.must(s.Routes.Add(s.ctx, routeTo))
			s.must(s.Routes.Add(s.ctx, routeNetwork))
			before := s.viaDefault()
			for range 2 {
				s.must(s.Routes.Delete(s.ctx, routeTo))
				is(s, "the address", s.routed(routeTo), false)
				is(s, "the network", s.routed(routeNetwork), true)
				is(s, "routes", len(s.viaDefault()), len(before)-1)
			}
		}},
		{"Routes.Delete", "what is no IPv4 network, and the default route, are refused", func(s *suite) {
			before := s.borrowRoutes()
			for _, bad := range badDestinations() {
				s.refused("route to "+bad, s.Routes.Delete(s.ctx, bad))
			}
			is(s, "routes", len(s.viaDefault()), len(before))
		}},
	}
}

func badDestinations() []string {
	return []string{"", "0.0.0.0/0", "198.51.100.77", "198.51.100.77/24", "198.51.100.77/33", "2001:db8::/64", "a/32"}
}
