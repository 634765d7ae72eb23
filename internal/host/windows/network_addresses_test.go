package windows

import (
	"net/netip"
	"slices"
	"testing"
)

func TestAddresses(t *testing.T) {
	at := func(index, metric uint32, addresses ...string) adapter {
		a := adapter{index: index, metric: metric}
		for _, text := range addresses {
			a.addresses = append(a.addresses, netip.MustParseAddr(text))
		}
		return a
	}
	for name, c := range map[string]struct {
		adapters []adapter
		routes   []defaultRoute
		want     []string
	}{
		"a machine without an adapter has none": {},
		"the adapter with the default route comes first": {
			[]adapter{at(1, 5, "172.20.0.1"), at(2, 25, "10.0.0.5", "10.0.0.6")},
			[]defaultRoute{{2, 0}},
			[]string{"10.0.0.5", "10.0.0.6", "172.20.0.1"},
		},
		"of two default routes the one with the lower sum of metrics counts": {
			[]adapter{at(1, 50, "10.1.0.1"), at(2, 20, "10.2.0.1")},
			[]defaultRoute{{1, 0}, {2, 40}, {2, 10}},
			[]string{"10.2.0.1", "10.1.0.1"},
		},
		"a route of an adapter that is down does not count": {
			[]adapter{at(1, 5, "10.1.0.1"), at(2, 5, "10.2.0.1")},
			[]defaultRoute{{9, 0}, {2, 10}},
			[]string{"10.2.0.1", "10.1.0.1"},
		},
		"without a default route the order of Windows stays": {
			[]adapter{at(3, 9, "10.3.0.1"), at(1, 5, "10.1.0.1")}, nil,
			[]string{"10.3.0.1", "10.1.0.1"},
		},
		"what others cannot reach is left out": {
			[]adapter{at(1, 5, "127.0.0.1", "169.254.3.4", "0.0.0.0", "fe80::1", "10.0.0.5")}, nil,
			[]string{"10.0.0.5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := orderAddresses(c.adapters, c.routes); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestHasStaticAddress(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("10.0.0.4")}
	everywhere := netip.MustParsePrefix("0.0.0.0/0")
	route1, route2 := route{destination: everywhere, index: 1, metric: 5}, route{destination: everywhere, index: 2, metric: 1}
	for name, c := range map[string]struct {
		adapters []adapter
		routes   []route
		want     bool
	}{
		"an adapter without DHCP":             {[]adapter{{index: 1, addresses: own}}, []route{route1}, true},
		"an adapter with it":                  {[]adapter{{index: 1, addresses: own, dhcp: true}}, []route{route1}, false},
		"the one of the better route counts":  {[]adapter{{index: 1, addresses: own}, {index: 2, addresses: own, dhcp: true}}, []route{route1, route2}, false},
		"no default route":                    {[]adapter{{index: 1, addresses: own}}, nil, false},
		"an adapter that has no address left": {[]adapter{{index: 1}}, []route{route1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hasStaticAddress(c.adapters, c.routes); got != c.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}

// kube-proxy's endpoint adds an adapter that does not serve connections to the machine itself.
func TestMachineAdapters_KubeProxyEndpointExcluded(t *testing.T) {
	own := func(index, metric uint32, name, address string) adapter {
		return adapter{index: index, metric: metric, name: name, addresses: []netip.Addr{netip.MustParseAddr(address)}}
	}
	adapters := machineAdapters([]adapter{
		own(4, 5, "vEthernet (VIPEndpoint)", "10.132.1.2"), own(5, 5, "VETHERNET (vipendpoint) 2", "10.132.1.3"),
		own(7, 25, "vEthernet (Ethernet 2)", "10.0.0.5"),
	})
	if got := orderAddresses(adapters, []defaultRoute{{4, 0}, {5, 0}, {7, 0}}); !slices.Equal(got, []string{"10.0.0.5"}) {
		t.Errorf("the machine's addresses are %v", got)
	}
	best, found := defaultOf(adapters, []route{
		{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("10.132.1.1"), 4, 0},
		{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("10.0.0.1"), 7, 0},
	})
	if !found || best.index != 7 {
		t.Errorf("the default route is %+v", best)
	}
}

func TestEndpointAdapter(t *testing.T) {
	newAdapter := func(name, id string, addresses ...string) adapter {
		a := adapter{name: name, id: id}
		for _, address := range addresses {
			a.addresses = append(a.addresses, netip.MustParseAddr(address))
		}
		return a
	}
	own := newAdapter("vEthernet (Ethernet)", "{own}", "10.0.0.5")
	for name, c := range map[string]struct {
		adapters []adapter
		want     string
	}{
		"its name and its address decide": {[]adapter{own, newAdapter("vEthernet (VIPEndpoint)", "{vip}", "10.132.1.2")}, "{vip}"},
		"Windows adds a number to a name that is in use": {[]adapter{
			newAdapter("vEthernet (VIPEndpoint)", "{former}", "10.132.0.2"), newAdapter("vEthernet (vipendpoint) 2", "{vip}", "10.132.1.2"),
		}, "{vip}"},
		"the machine's own adapter is never one, whatever its address": {[]adapter{newAdapter(own.name, own.id, "10.132.1.2")}, ""},
		"an adapter without its address is not known yet":              {[]adapter{own, newAdapter("vEthernet (VIPEndpoint)", "{vip}")}, ""},
		"none": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := endpointAdapter(c.adapters, "VIPEndpoint", "10.132.1.2"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
