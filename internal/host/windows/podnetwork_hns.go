//go:build windows

package windows

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unsafe"

	"github.com/Microsoft/go-winio/pkg/guid"
	"github.com/Microsoft/hcsshim/hcn"
	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// networkNamed finds an HNS network by its name.
func networkNamed(name string) (hcn.HostComputeNetwork, error) {
	list, err := listNetworks()
	if err != nil {
		return hcn.HostComputeNetwork{}, err
	}
	for _, network := range list {
		if strings.EqualFold(network.Name, name) {
			return network, nil
		}
	}
	return hcn.HostComputeNetwork{}, fmt.Errorf("HNS network %s: %w", name, host.ErrNotExist)
}

// makePod makes a namespace with an endpoint of the network in it, and returns the endpoint's address.
func makePod(network hcn.HostComputeNetwork, to netip.Addr, provider string) (netip.Addr, error) {
	settings := &hcn.HostComputeEndpoint{Name: podEndpoint, SchemaVersion: hcn.V2SchemaVersion(),
		Routes: defaultRoutes(network)}
	if network.Type == hcn.Overlay {
		policies, err := overlayPolicies(to, provider)
		if err != nil {
			return netip.Addr{}, err
		}
		settings.Policies = policies
	}
	endpoint, err := network.CreateEndpoint(settings)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("make an HNS endpoint on network %s: %w", network.Name, absentIsMissing(err))
	}
	address, err := netip.ParseAddr(describeEndpoint(*endpoint, network.Name).Address)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("the HNS endpoint has no address: %w", err)
	}
	if err := createNamespace(); err != nil {
		return netip.Addr{}, fmt.Errorf("make a network namespace: %w", hnsError(err))
	}
	if err := hcn.AddNamespaceEndpoint(podNamespace, endpoint.Id); err != nil {
		return netip.Addr{}, fmt.Errorf("put the HNS endpoint into the network namespace: %w", hnsError(err))
	}
	return address, nil
}

// defaultRoutes returns the network's routes to everywhere, which the CNI plugins give to pods.
func defaultRoutes(network hcn.HostComputeNetwork) []hcn.Route {
	var list []hcn.Route
	for _, ipam := range network.Ipams {
		for _, subnet := range ipam.Subnets {
			for _, each := range subnet.Routes {
				if each.DestinationPrefix == "0.0.0.0/0" {
					list = append(list, each)
				}
			}
		}
	}
	return list
}

// overlayPolicies are what the plugins' configuration gives to pods of an overlay network: nothing that goes to the
// cluster is translated or leaves unencapsulated, and the machine's address is the outer one. Here that counts for the
// one address.
func overlayPolicies(to netip.Addr, own string) ([]hcn.EndpointPolicy, error) {
	prefix := to.String() + "/32"
	var list []hcn.EndpointPolicy
	for _, policy := range []struct {
		kind     hcn.EndpointPolicyType
		settings any
	}{
		{hcn.OutBoundNAT, hcn.OutboundNatPolicySetting{Exceptions: []string{prefix}}},
		{hcn.SDNRoute, hcn.SDNRoutePolicySetting{DestinationPrefix: prefix, NeedEncap: true}},
		{hcn.NetworkProviderAddress, hcn.ProviderAddressEndpointPolicySetting{ProviderAddress: own}},
	} {
		data, err := json.Marshal(policy.settings)
		if err != nil {
			return nil, err
		}
		list = append(list, hcn.EndpointPolicy{Type: policy.kind, Settings: data})
	}
	return list, nil
}

// createNamespace makes the namespace under its own ID:
//
//	HRESULT HcnCreateNamespace(REFGUID Id, PCWSTR Settings, HCN_NAMESPACE *Namespace, PWSTR *ErrorRecord)
//
// hcsshim always lets HNS choose the ID, and nobody would find the namespace again after this process was killed.
func createNamespace() error {
	id, err := guid.FromString(podNamespace)
	if err != nil {
		return err
	}
	settings, err := json.Marshal(hcn.HostComputeNamespace{Id: podNamespace, Type: hcn.NamespaceTypeHost,
		SchemaVersion: hcn.V2SchemaVersion()})
	if err != nil {
		return err
	}
	text, err := windows.UTF16PtrFromString(string(settings))
	if err != nil {
		return err
	}
	api := windows.NewLazySystemDLL("computenetwork.dll")
	create, closing := api.NewProc("HcnCreateNamespace"), api.NewProc("HcnCloseNamespace")
	if err := errors.Join(create.Find(), closing.Find()); err != nil {
		return err
	}
	var (
		handle uintptr
		record *uint16
	)
	status, _, _ := create.Call(uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(text)),
		uintptr(unsafe.Pointer(&handle)), uintptr(unsafe.Pointer(&record)))
	words := windows.UTF16PtrToString(record)
	windows.CoTaskMemFree(unsafe.Pointer(record))
	if int32(status) < 0 {
		return fmt.Errorf("HcnCreateNamespace: %w %s", windows.Errno(uint32(status)), words)
	}
	_, _, _ = closing.Call(handle) // the namespace stays
	return nil
}

// compartmentOfPod returns the compartment that the namespace is: HNS calls its number NamespaceId.
func compartmentOfPod() (uint32, error) {
	namespace, err := hcn.GetNamespaceByID(podNamespace)
	if err != nil {
		return 0, fmt.Errorf("find the network namespace: %w", hnsError(err))
	}
	if namespace.NamespaceId == 0 {
		return 0, errors.New("HNS does not report the compartment of the network namespace")
	}
	return namespace.NamespaceId, nil
}

// clearPod takes away what makePod has made, by this process or another.
func clearPod() error {
	endpoint := deleteEndpoint(podEndpoint)
	if errors.Is(endpoint, host.ErrNotExist) {
		endpoint = nil
	}
	err := (&hcn.HostComputeNamespace{Id: podNamespace}).Delete()
	return errors.Join(endpoint, absentIsFine(err))
}
