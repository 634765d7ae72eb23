package windows

import (
	"net/netip"
	"slices"
	"testing"
)

func TestDefaultRoute(t *testing.T) {
	via := func(destination, hop string, index, metric uint32) route {
		return route{netip.MustParsePrefix(destination), netip.MustParseAddr(hop), index, metric}
	}
	adapters := []adapter{{index: 3, metric: 25}, {index: 7, metric: 5}}
	routes := []route{
		via("10.0.0.0/24", "0.0.0.0", 7, 256), via("0.0.0.0/0", "10.1.0.1", 3, 0), via("0.0.0.0/0", "10.0.0.1", 7, 10),
		via("169.254.169.254/32", "10.0.0.1", 7, 0), via("0.0.0.0/0", "10.2.0.1", 9, 0), via("10.0.0.0/24", "10.0.0.9", 7, 1),
	}
	t.Run("the lowest sum of the route's and the adapter's metric wins, and an adapter that is down never",
		func(t *testing.T) {
			got, found := defaultOf(adapters, routes)
			if !found || got != routes[2] {
				t.Errorf("got %+v, %t", got, found)
			}
		})
	t.Run("a machine without a default route has none", func(t *testing.T) {
		if got, found := defaultOf(adapters, routes[:1]); found {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("only the adapter's destinations count, each once", func(t *testing.T) {
		got := destinationsVia(7, routes)
		if want := []string{"0.0.0.0/0", "10.0.0.0/24", "169.254.169.254/32"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
