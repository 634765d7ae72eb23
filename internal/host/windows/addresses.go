//go:build windows

// Addresses come from GetAdaptersAddresses and GetIpForwardTable2 for IPv4 only. Package net is not used: it queries
// all address families at once and does not report which adapter has the default route.

package windows

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"
)

// listAddresses returns the machine's IPv4 addresses, starting with the address of the default route, and reports
// whether that address is static (not from DHCP).
func listAddresses() (list []string, static bool, err error) {
	adapters, err := listAdapters()
	if err != nil {
		return nil, false, err
	}
	table, err := listRoutes()
	if err != nil {
		return nil, false, err
	}
	var routes []defaultRoute
	for _, each := range table {
		if each.destination.Bits() == 0 {
			routes = append(routes, defaultRoute{each.index, each.metric})
		}
	}
	return orderAddresses(adapters, routes), hasStaticAddress(adapters, table), nil
}

// adapterDHCP is IP_ADAPTER_DHCP_ENABLED (iptypes.h).
const adapterDHCP = 0x4

// listAdapters returns the active adapters of the machine itself.
func listAdapters() ([]adapter, error) {
	adapters, err := adaptersUp()
	return machineAdapters(adapters), err
}

// adaptersUp returns all active adapters, including the adapter of kube-proxy's endpoint.
func adaptersUp() ([]adapter, error) {
	var adapters []adapter
	err := eachAdapter(func(at *windows.IpAdapterAddresses) {
		if at.OperStatus != windows.IfOperStatusUp || at.IfType == windows.IF_TYPE_SOFTWARE_LOOPBACK {
			return
		}
		found := adapter{index: at.IfIndex, metric: at.Ipv4Metric, dhcp: at.Flags&adapterDHCP != 0,
			name: windows.UTF16PtrToString(at.FriendlyName), id: windows.BytePtrToString(at.AdapterName),
			mac: slices.Clone(at.PhysicalAddress[:min(int(at.PhysicalAddressLength), len(at.PhysicalAddress))])}
		for unicast := at.FirstUnicastAddress; unicast != nil; unicast = unicast.Next {
			if address, ok := netip.AddrFromSlice(unicast.Address.IP()); ok {
				found.addresses = append(found.addresses, address.Unmap())
			}
		}
		adapters = append(adapters, found)
	})
	return adapters, err
}

// eachAdapter calls visit for each network adapter with its IPv4 addresses.
func eachAdapter(visit func(*windows.IpAdapterAddresses)) error {
	const flags = windows.GAA_FLAG_SKIP_ANYCAST | windows.GAA_FLAG_SKIP_MULTICAST | windows.GAA_FLAG_SKIP_DNS_SERVER
	size := uint32(16 << 10)
	for {
		buffer := make([]uint64, size/8+1)
		size = uint32(len(buffer) * 8)
		first := (*windows.IpAdapterAddresses)(unsafe.Pointer(&buffer[0]))
		switch err := windows.GetAdaptersAddresses(windows.AF_INET, flags, 0, first, &size); {
		case errors.Is(err, windows.ERROR_NO_DATA):
			return nil // no adapter has an address
		case errors.Is(err, windows.ERROR_BUFFER_OVERFLOW):
			continue
		case err != nil:
			return fmt.Errorf("list the network adapters: %w", err)
		}
		for at := first; at != nil; at = at.Next {
			visit(at)
		}
		return nil
	}
}
