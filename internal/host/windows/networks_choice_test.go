package windows

import "testing"

func TestChoiceOfAddresses(t *testing.T) {
	for want, prefixes := range map[string][]string{
		"":              {"", "none"},
		"10.132.1.0/24": {"fd00::/64", "10.132.1.0/24", "10.132.2.0/24"},
		"fd00::/64":     {"fd00::/64", "fd01::/64"},
	} {
		if got := subnetOf(prefixes); got != want {
			t.Errorf("%v: got %q, want %q", prefixes, got, want)
		}
	}
	for want, addresses := range map[string][]string{
		"":         {"", "none"},
		"10.1.2.3": {"fd00::1", "10.1.2.3", "10.1.2.4"},
		"fd00::1":  {"fd00::1"},
	} {
		if got := addressOf(addresses); got != want {
			t.Errorf("%v: got %q, want %q", addresses, got, want)
		}
	}
}

func TestPrefixLength(t *testing.T) {
	for subnet, want := range map[string]uint8{"10.132.1.0/24": 24, "fd00::/64": 64, "none": 0, "": 0} {
		if got := prefixLengthOf(subnet); got != want {
			t.Errorf("%q: got %d, want %d", subnet, got, want)
		}
	}
}

func TestNetworksWithoutHostRoute(t *testing.T) {
	for name, c := range map[string]struct {
		policies []string
		want     bool
	}{
		"no policy is listed: nothing is known": {nil, false},
		"HostRoute is listed":                   {[]string{"VxlanPort", "HOSTROUTE"}, false},
		"only other policies are listed":        {[]string{"AutomaticDNS", "VxlanPort", "RemoteSubnetRoute"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lacksHostRoute(c.policies); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
