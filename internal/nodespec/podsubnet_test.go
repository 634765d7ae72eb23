package nodespec

import "testing"

func TestPodSubnet_ReservedAddresses(t *testing.T) {
	for subnet, want := range map[string][2]string{
		"10.132.0.0/23":   {"10.132.0.2", "10.132.0.3"},
		"10.132.1.128/25": {"10.132.1.130", "10.132.1.131"},
		"10.132.1.7/24":   {"10.132.1.2", "10.132.1.3"},
		"10.132.1.8/29":   {"10.132.1.10", "10.132.1.11"},
		"10.132.1.8/30":   {"", "10.132.1.9"},
		"fd00::/64":       {"", "fd00::1"},
		"":                {"", ""},
		"10.132.0.0":      {"", ""},
	} {
		t.Run(subnet, func(t *testing.T) {
			if got := [2]string{SourceVIPAddress(subnet), PodRangeStart(subnet)}; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
