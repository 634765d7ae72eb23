package windows

import (
	"net"
	"net/netip"
	"testing"
)

func TestIsAttachedMessage(t *testing.T) {
	const german = "Dieser Endpunkt ist bereits an den Switch angefügt."
	for text, want := range map[string]bool{
		"hns failed with error : This endpoint is already attached to the switch.":                                                 true,
		"failed during hnsCallRawResponse: hnsCall failed in Win32: This endpoint is already attached to the switch. (0x803b0014)": true,
		"hnsCall failed in Win32: winapi error #2151350292 (0x803B0014)":                                                           true,
		"hns failed with error : " + german:                                                                                        true,
		"hns failed with error : The wrong diskette is in the drive. ":                                                             false,
		"hns failed with error : Element not found.":                                                                               false,
		"hnsCall failed in Win32: The endpoint was not found (0x803b0002)":                                                         false,
	} {
		if got := isAttachedMessage(text, german); got != want {
			t.Errorf("%q: got %t", text, got)
		}
		if isAttachedMessage("Element not found.", "") {
			t.Error("a text that Windows does not have is in each error")
		}
	}
}

// The adapters of the machine show whether an endpoint is attached to the machine, regardless of its HNS state.
func TestHasAdapter_MatchesEndpointAddress(t *testing.T) {
	adapters := []adapter{
		{name: "Ethernet"},
		{name: "vEthernet (VIPEndpoint)", mac: net.HardwareAddr{0, 0x15, 0x5d, 0xdb, 0xcc, 0x7a}, addresses: []netip.Addr{netip.MustParseAddr("10.132.1.2")}},
	}
	for name, c := range map[string]struct {
		mac  string
		ip   net.IP
		want bool
	}{
		"by its hardware address":             {"00-15-5D-DB-CC-7A", nil, true},
		"by its IP address":                   {"00-15-5D-00-00-01", net.ParseIP("10.132.1.2"), true},
		"another one's":                       {"00-15-5D-00-00-01", net.ParseIP("10.132.1.3"), false},
		"an endpoint without addresses":       {"", nil, false},
		"an endpoint with what is no address": {"none", net.IP{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hasAdapter(adapters, c.mac, c.ip); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
