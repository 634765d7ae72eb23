//go:build windows

package windows

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

// HNS refuses to attach an endpoint twice and may fail on the first attempt. It may also report different states for
// an endpoint of the machine and endpoints of containers.
func TestAttachEndpoint_HandlesAllHNSReports(t *testing.T) {
	requireSimulatedParts(t)
	enableHNS(t)
	machine, err := Open()
	requireNoError(t, err)
	const network, endpoint, degraded = "wmco-attach", "wmco-attach-endpoint", 5
	n := networks{}
	made := func(t *testing.T, subnet, address string) {
		t.Helper()
		_ = n.DeleteNetwork(t.Context(), network)
		requireNoError(t, createNetwork(t.Context(), machine, host.HNSNetwork{Name: network, Type: "NAT", Subnet: subnet}))
		t.Cleanup(func() { _ = n.DeleteNetwork(context.WithoutCancel(t.Context()), network) })
		_, err := n.CreateEndpoint(t.Context(), network, endpoint, address)
		requireNoError(t, err)
	}
	attached := func(t *testing.T) bool {
		t.Helper()
		list, err := n.Endpoints(t.Context())
		requireNoError(t, err)
		return slices.ContainsFunc(list, func(e host.HNSEndpoint) bool { return e.Name == endpoint && e.Attached })
	}
	for name, codes := range map[string]int{"in a text": 0, "as a code": 1} {
		t.Run("a second attachment is no error, refused "+name, func(t *testing.T) {
			made(t, "10.213.79.0/24", "")
			setFault(t, "hns", map[string]any{"AttachedState": degraded, "AttachCodes": codes})
			requireNoError(t, n.AttachEndpoint(t.Context(), endpoint))
			if attached(t) {
				t.Fatal("the test shows nothing: the state alone shows the attachment")
			}
			requireNoError(t, n.AttachEndpoint(t.Context(), endpoint))
		})
		t.Run("a failure is an error, and no absence, "+name, func(t *testing.T) {
			made(t, "10.213.79.0/24", "")
			setFault(t, "hns", map[string]any{"AttachFails": 1, "AttachCodes": codes})
			if err := n.AttachEndpoint(t.Context(), endpoint); err == nil || errors.Is(err, host.ErrNotExist) {
				t.Errorf("got error %v", err)
			}
			requireNoError(t, n.AttachEndpoint(t.Context(), endpoint))
			if !attached(t) {
				t.Error("it is not attached")
			}
		})
	}
	t.Run("an adapter of the machine with the endpoint's address shows the attachment in each state", func(t *testing.T) {
		own, _, err := listAddresses()
		requireNoError(t, err)
		subnet := netip.PrefixFrom(netip.MustParseAddr(own[0]), 24).Masked()
		made(t, subnet.String(), own[0])
		setFault(t, "hns", map[string]any{"AttachedState": degraded})
		if !attached(t) {
			t.Error("it is not attached")
		}
	})
}

// Only the older API reports the address of a network's adapter, and not for every network.
func TestNetworks_ManagementIPOfAdapter(t *testing.T) {
	requireSimulatedParts(t)
	enableHNS(t)
	machine, err := Open()
	requireNoError(t, err)
	const network = "wmco-adapter"
	n := networks{}
	_ = n.DeleteNetwork(t.Context(), network)
	requireNoError(t, createNetwork(t.Context(), machine, host.HNSNetwork{Name: network, Type: "NAT", Subnet: "10.213.80.0/24"}))
	t.Cleanup(func() { _ = n.DeleteNetwork(context.WithoutCancel(t.Context()), network) })
	for _, address := range []string{"", "10.1.0.5"} {
		setFault(t, "hns", map[string]any{"ManagementIP": address})
		list, err := n.Networks(t.Context())
		requireNoError(t, err)
		i := slices.IndexFunc(list, func(each host.HNSNetwork) bool { return each.Name == network })
		if i < 0 || list[i].ManagementIP != address || list[i].NoHostRoute {
			t.Errorf("with %q: got %+v", address, list)
		}
	}
}
