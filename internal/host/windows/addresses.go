//go:build windows

// Addresses come from GetAdaptersAddresses and GetIpForwardTable2, asked for IPv4 alone. Package net is not used: it asks for all families at
// once and does not tell which adapter has the default route.

package windows

import (
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/windows"
)

// addresses are the machine's IPv4 addresses, the default route's first.
func addresses() ([]string, error) {
	adapters, err := listAdapters()
	if err != nil {
		return nil, err
	}
	routes, err := listDefaultRoutes()
	if err != nil {
		return nil, err
	}
	return orderAddresses(adapters, routes), nil
}

// listAdapters are the adapters that are up.
func listAdapters() ([]adapter, error) {
	const flags = windows.GAA_FLAG_SKIP_ANYCAST | windows.GAA_FLAG_SKIP_MULTICAST | windows.GAA_FLAG_SKIP_DNS_SERVER
	size := uint32(16 << 10)
	var buffer []uint64
	for {
		buffer = make([]uint64, size/8+1)
		size = uint32(len(buffer) * 8)
		err := windows.GetAdaptersAddresses(windows.AF_INET, flags, 0, (*windows.IpAdapterAddresses)(unsafe.Pointer(&buffer[0])), &size)
		if err == nil {
			break
		}
		if errors.Is(err, windows.ERROR_NO_DATA) {
			return nil, nil // no adapter has an address
		}
		if !errors.Is(err, windows.ERROR_BUFFER_OVERFLOW) {
			return nil, fmt.Errorf("list the network adapters: %w", err)
		}
	}
	var adapters []adapter
	for at := (*windows.IpAdapterAddresses)(unsafe.Pointer(&buffer[0])); at != nil; at = at.Next {
		if at.OperStatus != windows.IfOperStatusUp || at.IfType == windows.IF_TYPE_SOFTWARE_LOOPBACK {
			continue
		}
		found := adapter{index: at.IfIndex, metric: at.Ipv4Metric}
		for unicast := at.FirstUnicastAddress; unicast != nil; unicast = unicast.Next {
			if address, ok := netip.AddrFromSlice(unicast.Address.IP()); ok {
				found.addresses = append(found.addresses, address.Unmap())
			}
		}
		adapters = append(adapters, found)
	}
	return adapters, nil
}

func listDefaultRoutes() ([]defaultRoute, error) {
	var table *windows.MibIpForwardTable2
	if err := windows.GetIpForwardTable2(windows.AF_INET, &table); err != nil {
		if errors.Is(err, windows.ERROR_NOT_FOUND) {
			return nil, nil // no routes
		}
		return nil, fmt.Errorf("list the routes: %w", err)
	}
	defer windows.FreeMibTable(unsafe.Pointer(table))
	var routes []defaultRoute
	for _, row := range table.Rows() {
		if row.DestinationPrefix.PrefixLength == 0 {
			routes = append(routes, defaultRoute{row.InterfaceIndex, row.Metric})
		}
	}
	return routes, nil
}
