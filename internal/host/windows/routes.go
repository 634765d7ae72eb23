//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// routes implements host.Routes with the IP Helper API. GetIpForwardTable2 returns the active routes, and
// GetAdaptersAddresses the metrics of the adapters. InitializeIpForwardEntry, CreateIpForwardEntry2 and
// DeleteIpForwardEntry2, which golang.org/x/sys/windows lacks, change only active routes, not the persistent routes
// that are recreated at each boot.
type routes struct{}

func (routes) ViaDefault(ctx context.Context) ([]string, error) {
	list, err := callDetached(ctx, func() ([]string, error) {
		table, best, found, err := readRoutes()
		if err != nil || !found {
			return nil, err
		}
		return destinationsVia(best.index, table), nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the routes through the default route's adapter: %w", err)
	}
	return list, nil
}

func (routes) Add(ctx context.Context, destination string) error {
	return changeRoutes(ctx, "add", destination, addRoute)
}

func (routes) Delete(ctx context.Context, destination string) error {
	return changeRoutes(ctx, "delete", destination, deleteRoutes)
}

func changeRoutes(ctx context.Context, what, destination string, change func(netip.Prefix) error) error {
	prefix, err := host.ParseDestination(destination)
	if err == nil {
		err = runDetached(ctx, func() error { return change(prefix) })
	}
	if err != nil {
		return fmt.Errorf("%s route to %s: %w", what, destination, err)
	}
	return nil
}

// readRoutes returns the active routes and the default route.
func readRoutes() (table []route, best route, found bool, err error) {
	adapters, err := listAdapters()
	if err != nil {
		return nil, route{}, false, err
	}
	if table, err = listRoutes(); err != nil {
		return nil, route{}, false, err
	}
	best, found = defaultOf(adapters, table)
	return table, best, found, nil
}

func addRoute(destination netip.Prefix) error {
	table, best, found, err := readRoutes()
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("this machine has no default route: %w", host.ErrNotExist)
	}
	for _, each := range table {
		if each.index == best.index && each.destination == destination {
			return nil
		}
	}
	call, err := findProcedure("CreateIpForwardEntry2")
	if err != nil {
		return err
	}
	row := rowOf(destination, best)
	if status, _, _ := call.Call(uintptr(unsafe.Pointer(&row))); status != 0 && !errors.Is(windows.Errno(status),
		windows.ERROR_OBJECT_ALREADY_EXISTS) {
		return fmt.Errorf("through gateway %s: %w", best.nextHop, translateError(windows.Errno(status)))
	}
	return nil
}

// deleteRoutes deletes each route to the destination through the adapter of the default route, regardless of the
// gateway.
func deleteRoutes(destination netip.Prefix) error {
	table, best, found, err := readRoutes()
	if err != nil || !found {
		return err
	}
	for _, each := range table {
		if each.index != best.index || each.destination != destination {
			continue
		}
		call, err := findProcedure("DeleteIpForwardEntry2")
		if err != nil {
			return err
		}
		row := rowOf(destination, each)
		if status, _, _ := call.Call(uintptr(unsafe.Pointer(&row))); status != 0 && !errors.Is(windows.Errno(status),
			windows.ERROR_NOT_FOUND) {
			return fmt.Errorf("through gateway %s: %w", each.nextHop, translateError(windows.Errno(status)))
		}
	}
	return nil
}

// findProcedure returns a function of the IP Helper API.
func findProcedure(function string) (*windows.LazyProc, error) {
	call := windows.NewLazySystemDLL("iphlpapi.dll").NewProc(function)
	if err := call.Find(); err != nil {
		return nil, fmt.Errorf("this version of Windows has no %s: %w", function, err)
	}
	return call, nil
}

// listRoutes returns the active IPv4 routes.
func listRoutes() ([]route, error) {
	var table *windows.MibIpForwardTable2
	if err := windows.GetIpForwardTable2(windows.AF_INET, &table); err != nil {
		if errors.Is(err, windows.ERROR_NOT_FOUND) {
			return nil, nil // no routes
		}
		return nil, fmt.Errorf("list routes: %w", err)
	}
	defer windows.FreeMibTable(unsafe.Pointer(table))
	var list []route
	for _, row := range table.Rows() {
		destination, err := addressIn(&row.DestinationPrefix.Prefix).Prefix(int(row.DestinationPrefix.PrefixLength))
		if err != nil {
			continue // not an IPv4 route
		}
		list = append(list, route{destination, addressIn(&row.NextHop), row.InterfaceIndex, row.Metric})
	}
	return list, nil
}

// addressIn returns the address of an IPv4 SOCKADDR_INET, or the zero value for another family.
func addressIn(socket *windows.RawSockaddrInet) netip.Addr {
	if socket.Family != windows.AF_INET {
		return netip.Addr{}
	}
	return netip.AddrFrom4((*windows.RawSockaddrInet4)(unsafe.Pointer(socket)).Addr)
}

// setAddress sets an IPv4 SOCKADDR_INET.
func setAddress(socket *windows.RawSockaddrInet, address netip.Addr) {
	*(*windows.RawSockaddrInet4)(unsafe.Pointer(socket)) = windows.RawSockaddrInet4{Family: windows.AF_INET,
		Addr: address.As4()}
}

// rowOf returns a route to the destination through the adapter and the gateway of another route.
// InitializeIpForwardEntry sets all other fields: Windows requires this call before CreateIpForwardEntry2 and may
// add fields. The metric is an offset to the metric of the adapter.
func rowOf(destination netip.Prefix, through route) windows.MibIpForwardRow2 {
	row := initializedRow()
	row.InterfaceIndex, row.Metric, row.Protocol = through.index, 0, windows.MIB_IPPROTO_NETMGMT
	setAddress(&row.DestinationPrefix.Prefix, destination.Addr())
	row.DestinationPrefix.PrefixLength = uint8(destination.Bits())
	setAddress(&row.NextHop, through.nextHop)
	return row
}

// initializedRow returns a row with the defaults of Windows, or with the documented defaults if the function is
// missing.
func initializedRow() (row windows.MibIpForwardRow2) {
	initialize, err := findProcedure("InitializeIpForwardEntry")
	if err != nil {
		row.ValidLifetime, row.PreferredLifetime, row.Immortal = infinite, infinite, 1
		row.Origin = windows.NlroManual
		return row
	}
	_, _, _ = initialize.Call(uintptr(unsafe.Pointer(&row))) // returns nothing
	return row
}

const infinite = 0xffffffff
