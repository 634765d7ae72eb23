//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Microsoft/hcsshim"
	"github.com/Microsoft/hcsshim/hcn"
	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// networks implements host.Networks with the Host Compute Network API (computenetwork.dll, schema 2.0) through
// github.com/Microsoft/hcsshim/hcn. containerd's CNI plugins and kube-proxy also use this API. Its lists include
// networks and endpoints of the older API (HNSCall).
//
// Each entry point is HRESULT f(...). Texts are UTF-16 and freed by CoTaskMemFree, identifiers are GUID pointers,
// and the last argument is PWSTR *ErrorRecord:
//
//	HcnEnumerateNetworks(Query, *Networks), HcnEnumerateEndpoints(Query, *Endpoints)       JSON arrays of GUIDs
//	HcnOpenNetwork(Id, *Network), HcnQueryNetworkProperties(Network, Query, *Properties)
//	HcnCloseNetwork(Network), HcnDeleteNetwork(Id)
//	HcnOpenEndpoint(Id, *Endpoint), HcnQueryEndpointProperties(Endpoint, Query, *Properties)
//	HcnCloseEndpoint(Endpoint), HcnDeleteEndpoint(Id)
//	HcnCreateEndpoint(Network, Id = GUID of zeros, Settings, *Endpoint)
//
// Query is {"SchemaVersion":{"Major":2,"Minor":0},"Flags":0}, never with a filter. The properties read from a
// network are: ID, Name, Type, Policies[].Type, Ipams[].Subnets[].IpAddressPrefix. The properties read from an
// endpoint are: ID, Name, HostComputeNetwork (the ID of the network), IpConfigurations[].IpAddress. The settings of
// a new endpoint are {"Name":..., "HostComputeNetwork":..., "SchemaVersion":{"Major":2,"Minor":0}} and, for a
// specific address, "IpConfigurations":[{"IpAddress":..., "PrefixLength":...}]. Otherwise HNS chooses an address.
// HNS deletes the endpoints of a network with the network. networks_attach.go attaches endpoints.
type networks struct{}

// listAttempts is the maximum number of attempts to read a list. Each deletion of a listed object requires another
// attempt, and the endpoints of pods are deleted frequently.
const listAttempts = 5

func (networks) Networks(ctx context.Context) ([]host.HNSNetwork, error) {
	return callDetached(ctx, func() ([]host.HNSNetwork, error) {
		found, err := listNetworks()
		if err != nil {
			return nil, err
		}
		addresses := managementAddresses()
		list := make([]host.HNSNetwork, 0, len(found))
		for _, network := range found {
			policies := make([]string, 0, len(network.Policies))
			for _, policy := range network.Policies {
				policies = append(policies, string(policy.Type))
			}
			list = append(list, host.HNSNetwork{Name: network.Name, Type: string(network.Type), Subnet: subnetOf(subnetPrefixes(network)),
				ManagementIP: addresses[strings.ToLower(network.Id)], NoHostRoute: lacksHostRoute(policies)})
		}
		return list, nil
	})
}

// managementAddresses returns the address of each network's adapter, by network ID in lower case. Only the older API
// reports it (HNSCall: GET /networks/). If the list fails or a network has no adapter, the address is unknown.
func managementAddresses() map[string]string {
	addresses := map[string]string{}
	list, _ := hcsshim.HNSListNetworkRequest("GET", "", "")
	for _, network := range list {
		addresses[strings.ToLower(network.Id)] = network.ManagementIP
	}
	return addresses
}

func (networks) DeleteNetwork(ctx context.Context, name string) error {
	err := runDetached(ctx, func() error { return deleteNetwork(name) })
	if err != nil {
		return fmt.Errorf("delete HNS network %s: %w", name, err)
	}
	return nil
}

func (networks) Endpoints(ctx context.Context) ([]host.HNSEndpoint, error) {
	return callDetached(ctx, func() ([]host.HNSEndpoint, error) {
		networks, err := listNetworks()
		if err != nil {
			return nil, err
		}
		found, err := listEndpoints()
		if err != nil {
			return nil, err
		}
		adapters, _ := adaptersUp() // without adapters only the HNS states count
		attached, err := listAttached(adapters)
		if err != nil {
			return nil, err
		}
		names := map[string]string{}
		for _, network := range networks {
			names[strings.ToLower(network.Id)] = network.Name
		}
		list := make([]host.HNSEndpoint, 0, len(found))
		for _, endpoint := range found {
			described := describeEndpoint(endpoint, names[strings.ToLower(endpoint.HostComputeNetwork)])
			described.Attached = attached[strings.ToLower(endpoint.Id)]
			if described.Attached {
				described.Adapter = endpointAdapter(adapters, described.Name, described.Address)
			}
			list = append(list, described)
		}
		return list, nil
	})
}

func (networks) CreateEndpoint(ctx context.Context, network, name, address string) (host.HNSEndpoint, error) {
	made, err := callDetached(ctx, func() (host.HNSEndpoint, error) { return createEndpoint(network, name, address) })
	if err != nil {
		return host.HNSEndpoint{}, fmt.Errorf("create HNS endpoint %s: %w", name, err)
	}
	return made, nil
}

func (networks) DeleteEndpoint(ctx context.Context, name string) error {
	err := runDetached(ctx, func() error { return deleteEndpoint(name) })
	if err != nil {
		return fmt.Errorf("delete HNS endpoint %s: %w", name, err)
	}
	return nil
}

func listNetworks() ([]hcn.HostComputeNetwork, error) { return listHNS("networks", hcn.ListNetworks) }

func listEndpoints() ([]hcn.HostComputeEndpoint, error) {
	return listHNS("endpoints", hcn.ListEndpoints)
}

// listHNS reads a list again if a listed object was deleted during the read.
func listHNS[T any](what string, list func() ([]T, error)) (found []T, err error) {
	if err := openHNS(); err != nil {
		return nil, err
	}
	for range listAttempts {
		if found, err = list(); !isAbsent(err) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list HNS %s: %w", what, hnsError(err))
	}
	return found, nil
}

func deleteNetwork(name string) error {
	list, err := listNetworks()
	if err != nil {
		return err
	}
	return deleteNamed(list, name, func(n *hcn.HostComputeNetwork) string { return n.Name }, (*hcn.HostComputeNetwork).Delete)
}

func deleteEndpoint(name string) error {
	list, err := listEndpoints()
	if err != nil {
		return err
	}
	return deleteNamed(list, name, func(e *hcn.HostComputeEndpoint) string { return e.Name }, (*hcn.HostComputeEndpoint).Delete)
}

// deleteNamed deletes the objects of a list with the given name. It returns host.ErrNotExist if no object has the
// name.
func deleteNamed[T any](list []T, name string, nameOf func(*T) string, remove func(*T) error) error {
	err := host.ErrNotExist
	for i := range list {
		if !strings.EqualFold(nameOf(&list[i]), name) {
			continue
		}
		if err = ignoreAbsent(remove(&list[i])); err != nil {
			return err
		}
	}
	return err
}

func createEndpoint(network, name, address string) (host.HNSEndpoint, error) {
	endpoints, err := listEndpoints()
	if err != nil {
		return host.HNSEndpoint{}, err
	}
	for _, endpoint := range endpoints {
		if strings.EqualFold(endpoint.Name, name) {
			return host.HNSEndpoint{}, host.ErrExist
		}
	}
	list, err := listNetworks()
	if err != nil {
		return host.HNSEndpoint{}, err
	}
	for _, found := range list {
		if !strings.EqualFold(found.Name, network) {
			continue
		}
		made, err := found.CreateEndpoint(&hcn.HostComputeEndpoint{Name: name, SchemaVersion: hcn.V2SchemaVersion(),
			IpConfigurations: configurationOf(found, address)})
		if err != nil {
			return host.HNSEndpoint{}, fmt.Errorf("on HNS network %s: %w", network, wrapAbsent(err))
		}
		return describeEndpoint(*made, found.Name), nil
	}
	return host.HNSEndpoint{}, fmt.Errorf("HNS network %s: %w", network, host.ErrNotExist)
}

func describeEndpoint(endpoint hcn.HostComputeEndpoint, network string) host.HNSEndpoint {
	described := host.HNSEndpoint{Name: endpoint.Name, Network: network}
	addresses := make([]string, 0, len(endpoint.IpConfigurations))
	for _, configuration := range endpoint.IpConfigurations {
		addresses = append(addresses, configuration.IpAddress)
	}
	described.Address = addressOf(addresses)
	return described
}

func subnetPrefixes(network hcn.HostComputeNetwork) []string {
	var list []string
	for _, ipam := range network.Ipams {
		for _, subnet := range ipam.Subnets {
			list = append(list, subnet.IpAddressPrefix)
		}
	}
	return list
}

// isAbsent reports whether an HNS error means that a network or an endpoint does not exist.
func isAbsent(err error) bool {
	if hcn.IsNotFoundError(err) { // a search of hcsshim without a result
		return true
	}
	var code windows.Errno
	return slices.ContainsFunc(absentCodes(), func(absent uint32) bool {
		return hcn.CheckErrorWithCode(err, hcn.ErrorCode(absent)) || errors.As(err, &code) && uint32(code) == absent
	})
}

// ignoreAbsent treats a missing object as deleted.
func ignoreAbsent(err error) error {
	if err == nil || isAbsent(err) {
		return nil
	}
	return hnsError(err)
}

// wrapAbsent adds host.ErrNotExist to the error of an object that was deleted after it was listed. List errors
// are not converted, because a failed list does not prove that an object is missing.
func wrapAbsent(err error) error {
	if isAbsent(err) {
		return classifiedError{err, host.ErrNotExist}
	}
	return hnsError(err)
}

// codeHNSManagerStopped is HCN_E_MANAGER_STOPPED: the service is stopping or starting, and its objects remain.
const codeHNSManagerStopped = 0x803B0020

// hnsSilentCodes returns the error codes of a Host Networking Service that does not respond.
func hnsSilentCodes() []windows.Errno {
	return []windows.Errno{
		windows.ERROR_SERVICE_DISABLED, windows.ERROR_SERVICE_DOES_NOT_EXIST, windows.ERROR_SERVICE_NOT_ACTIVE,
		windows.RPC_S_SERVER_UNAVAILABLE, windows.EPT_S_NOT_REGISTERED, windows.Errno(codeHNSManagerStopped),
	}
}

// hnsError adds advice if the service does not respond.
func hnsError(err error) error {
	for _, code := range hnsSilentCodes() {
		if hcn.CheckErrorWithCode(err, hcn.ErrorCode(code)) {
			return fmt.Errorf("%w (the feature Containers must be enabled, and the Windows service hns must be running)", err)
		}
	}
	return err
}

// openHNS returns an error if the API is missing, because hcsshim panics in that case.
func openHNS() error {
	if err := windows.NewLazySystemDLL("computenetwork.dll").Load(); err != nil {
		return fmt.Errorf("the Host Networking Service is not installed (%w); enable the feature Containers and restart the host", err)
	}
	return nil
}
