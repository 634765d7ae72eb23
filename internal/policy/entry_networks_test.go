package policy

import (
	"net/netip"
	"testing"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestAddressesAtWhichNoHostCanBe(t *testing.T) {
	cluster := nodespec.Cluster{ServiceCIDRs: []string{"172.30.0.0/16", "garbage"}}
	cluster.Network.HybridClusterNetworks = []string{"10.132.0.0/14"}
	for address, none := range map[string]bool{
		"10.1.42.1": false, "192.168.0.8": false, "172.31.0.1": false, "203.0.113.9": false, "fd00::8": false,
		"127.0.0.1": true, "127.255.0.9": true, "169.254.169.254": true, "0.0.0.0": true, "224.0.0.1": true, "255.255.255.255": true, "241.0.0.1": true,
		"::1": true, "::": true, "fe80::1": true, "ff02::1": true, "::ffff:127.0.0.1": true, "::ffff:169.254.169.254": true,
		"172.30.0.1": true, "::ffff:172.30.0.10": true, "10.132.5.6": true,
	} {
		if what := NoHostAt(netip.MustParseAddr(address), cluster); (what != "") != none {
			t.Errorf("of %s is said %q", address, what)
		}
	}
}

func TestNamesOfTheAPIServer(t *testing.T) {
	cluster := nodespec.Cluster{APIServerInternalURL: "https://api-int.lab.example.com:6443"}
	for name, is := range map[string]bool{
		"api-int.lab.example.com": true, "API-INT.lab.example.com": true, "api.lab.example.com": true,
		"win.lab.example.com": false, "api.example.com": false, "api": false, "api-int.lab.example.com.evil.org": false, "": false,
	} {
		if NamesAPIServer(name, cluster) != is {
			t.Errorf("%q: want %t", name, is)
		}
	}
	if NamesAPIServer("", nodespec.Cluster{}) || NamesAPIServer("api.", nodespec.Cluster{}) {
		t.Error("a cluster of which nothing is known names something")
	}
}
