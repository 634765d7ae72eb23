package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/Microsoft/hcsshim"
	"github.com/Microsoft/hcsshim/hcn"
	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/test/witness/question"
)

// Flags of IP_ADAPTER_ADDRESSES (iptypes.h).
const (
	flagDDNS = 0x1
	flagDHCP = 0x4
)

// adapter is an adapter with properties that must not get into the evidence.
type adapter struct {
	question.Adapter
	hardware  []byte
	addresses []netip.Addr
}

func probeNetworking(n *question.Networking) error {
	n.Build = currentBuild()
	n.Deviceless = readSetting(`SYSTEM\CurrentControlSet\Services\hns\State`, "DeviceLessNicDisabled")
	list, err := listAdapters()
	if err != nil {
		return err
	}
	var own []netip.Addr
	for _, a := range list {
		n.Adapters = append(n.Adapters, a.Adapter)
		if a.Default {
			own = append(own, a.addresses...)
		}
	}
	if runs, err := isHNSRunning(); err != nil || !runs {
		return err // there are no networks
	}
	older, err := hcsshim.HNSListNetworkRequest("GET", "", "")
	if err != nil {
		return err
	}
	networks, err := hcn.ListNetworks()
	if err != nil {
		return err
	}
	for _, network := range networks {
		found := question.Network{Type: string(network.Type)}
		for _, policy := range network.Policies {
			found.Policies = append(found.Policies, string(policy.Type))
		}
		for _, same := range older {
			if address, err := netip.ParseAddr(same.ManagementIP); strings.EqualFold(same.Id, network.Id) && err == nil {
				found.Management = question.ManagementOther
				if slices.Contains(own, address) {
					found.Management = question.ManagementDefault
				}
			}
		}
		n.Networks = append(n.Networks, found)
	}
	return nil
}

// isHNSRunning reports whether HNS runs and can be queried. A query would otherwise start the service.
func isHNSRunning() (bool, error) {
	var hns question.Service
	err := probeHNSService(&hns)
	return hns.There && hns.State == windows.SERVICE_RUNNING, err
}

// listAdapters returns the adapters with IPv4, and marks the adapter with the default route.
func listAdapters() ([]adapter, error) {
	best, err := defaultInterface()
	if err != nil {
		return nil, err
	}
	const flags = windows.GAA_FLAG_SKIP_ANYCAST | windows.GAA_FLAG_SKIP_MULTICAST | windows.GAA_FLAG_SKIP_DNS_SERVER
	size := uint32(1 << 18)
	buffer := make([]uint64, size/8)
	first := (*windows.IpAdapterAddresses)(unsafe.Pointer(&buffer[0]))
	if err := windows.GetAdaptersAddresses(windows.AF_INET, flags, 0, first, &size); err != nil {
		return nil, fmt.Errorf("GetAdaptersAddresses: %w", err)
	}
	var list []adapter
	for at := first; at != nil; at = at.Next {
		id, name := windows.BytePtrToString(at.AdapterName), windows.UTF16PtrToString(at.FriendlyName)
		found := adapter{hardware: at.PhysicalAddress[:min(int(at.PhysicalAddressLength), len(at.PhysicalAddress))], Adapter: question.Adapter{
			Type: at.IfType, VIP: name == question.VIPAdapter, Virtual: strings.HasPrefix(name, "vEthernet") || at.IfType == windows.IF_TYPE_SOFTWARE_LOOPBACK,
			Connected: at.OperStatus == windows.IfOperStatusUp, Default: best != nil && best.InterfaceIndex == at.IfIndex,
			DHCP: at.Flags&flagDHCP != 0, Registers: at.Flags&flagDDNS != 0, MTU: at.Mtu,
			Registration: readSetting(`SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\`+id, "RegistrationEnabled")}}
		for unicast := at.FirstUnicastAddress; unicast != nil; unicast = unicast.Next {
			if address, ok := netip.AddrFromSlice(unicast.Address.IP()); ok {
				found.addresses = append(found.addresses, address.Unmap())
			}
		}
		list = append(list, found)
	}
	return list, nil
}

func routeTable() ([]windows.MibIpForwardRow2, error) {
	var table *windows.MibIpForwardTable2
	if err := windows.GetIpForwardTable2(windows.AF_INET, &table); err != nil {
		return nil, fmt.Errorf("GetIpForwardTable2: %w", err)
	}
	defer windows.FreeMibTable(unsafe.Pointer(table))
	return slices.Clone(table.Rows()), nil
}

// defaultInterface returns the default route with the lowest metric, or nil if there is none.
func defaultInterface() (best *windows.MibIpForwardRow2, err error) {
	rows, err := routeTable()
	for i := range rows {
		if rows[i].DestinationPrefix.PrefixLength == 0 && (best == nil || rows[i].Metric < best.Metric) {
			best = &rows[i]
		}
	}
	return best, err
}

// probeAttachment creates a separate network with addresses that are unlikely to be in use, and an endpoint in it.
func probeAttachment(e *question.Attachment) (err error) {
	if endpoint, err := hcsshim.GetHNSEndpointByName("VIPEndpoint"); err == nil {
		state := int(endpoint.State)
		e.Node = &state
	}
	network, err := (&hcn.HostComputeNetwork{Name: ownName, Type: hcn.NAT, SchemaVersion: hcn.V2SchemaVersion(),
		Ipams: []hcn.Ipam{{Type: "Static", Subnets: []hcn.Subnet{{IpAddressPrefix: "10.213.79.0/24",
			Routes: []hcn.Route{{NextHop: "10.213.79.1", DestinationPrefix: "0.0.0.0/0"}}}}}}}).Create()
	if err != nil {
		return fmt.Errorf("make an HNS network: %w", err)
	}
	defer func() { err = errors.Join(err, network.Delete()) }()
	made, err := (&hcn.HostComputeEndpoint{Name: ownName, HostComputeNetwork: network.Id, SchemaVersion: hcn.V2SchemaVersion()}).Create()
	if err != nil {
		return fmt.Errorf("make an HNS endpoint: %w", err)
	}
	defer func() { err = errors.Join(err, made.Delete()) }()
	endpoint := &hcsshim.HNSEndpoint{Id: made.Id}
	pace := time.NewTicker(500 * time.Millisecond)
	defer pace.Stop()
	for range 40 {
		failure := formatHNSError(endpoint.HostAttach(1))
		e.Tries = append(e.Tries, failure)
		if failure == "" {
			break
		}
		<-pace.C
	}
	e.Again = formatHNSError(endpoint.HostAttach(1))
	now, err := ownEndpoint(endpoint.Id)
	if err != nil {
		return err
	}
	e.State = int(now.State)
	hardware, _ := net.ParseMAC(now.MacAddress)
	list, err := listAdapters()
	e.Adapter = slices.ContainsFunc(list, func(a adapter) bool { return len(hardware) > 0 && bytes.Equal(a.hardware, hardware) })
	return err
}

// ownEndpoint finds an endpoint in the list of the older API, which includes the states.
func ownEndpoint(id string) (*hcsshim.HNSEndpoint, error) {
	list, err := hcsshim.HNSListEndpointRequest()
	for i := range list {
		if strings.EqualFold(list[i].Id, id) {
			return &list[i], nil
		}
	}
	return nil, errors.Join(err, errors.New("HNS does not list the endpoint"))
}

// formatHNSError returns the text of an error of HNS, with its code.
func formatHNSError(err error) string {
	var code windows.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &code):
		return fmt.Sprintf("0x%08x %s", uint32(code), err)
	}
	return err.Error()
}

func probeListing(e *question.Listing) error {
	if runs, err := isHNSRunning(); err != nil || !runs {
		return errors.Join(err, errors.New("hns does not run"))
	}
	started := time.Now()
	endpoints, err := hcn.ListEndpoints()
	if err == nil {
		_, err = hcsshim.HNSListEndpointRequest()
	}
	e.Endpoints, e.Milliseconds = len(endpoints), time.Since(started).Milliseconds()
	return err
}
