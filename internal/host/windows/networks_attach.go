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

// hostCompartment is the network compartment of the machine itself.
const hostCompartment = 1

// Whether an endpoint is attached, only the older API says (HNSCall of vmcompute.dll): GET /endpoints/ lists all, each
// with its State. It also attaches one to the machine: POST /endpoints/<ID>/attach with
// {"SystemType":"Host","CompartmentId":1}, as Attach-HNSHostEndpoint of Microsoft's hns.psm1 does. Windows then makes an
// adapter "vEthernet (<name>)" with the endpoint's addresses. The newer API has namespaces of the type HostDefault for
// that; nothing is known to use them.

func (networks) AttachEndpoint(ctx context.Context, name string) error {
	err := await(ctx, func() error { return attachEndpoint(name) })
	if err != nil {
		return fmt.Errorf("attach HNS endpoint %s to the machine: %w", name, err)
	}
	return nil
}

func attachEndpoint(name string) error {
	list, err := listEndpoints()
	if err != nil {
		return err
	}
	adapters, _ := adaptersUp() // without them HNS' own state counts alone
	attached, err := listAttached(adapters)
	if err != nil {
		return err
	}
	for _, endpoint := range list {
		switch {
		case !strings.EqualFold(endpoint.Name, name):
		case attached[strings.ToLower(endpoint.Id)]:
			return nil
		default:
			return attachListed(endpoint)
		}
	}
	return host.ErrNotExist
}

// attachListed attaches an endpoint that was listed. HNS refuses an endpoint that is attached. The older API mostly has
// no codes, only the words "Element not found." in the language of Windows, so another failure leads to another search
// for the endpoint.
func attachListed(endpoint hcn.HostComputeEndpoint) error {
	err := (&hcsshim.HNSEndpoint{Id: endpoint.Id}).HostAttach(hostCompartment)
	if err == nil || isAttachedAlready(err) {
		return nil
	}
	list, listErr := listEndpoints()
	if listErr == nil && !slices.ContainsFunc(list, func(each hcn.HostComputeEndpoint) bool {
		return strings.EqualFold(each.Id, endpoint.Id)
	}) {
		return meaningful{err, host.ErrNotExist}
	}
	return hnsError(err)
}

// States of endpoints in the older API. No source has the state of an endpoint that is attached to the machine itself.
const (
	stateAttached        = 2
	stateAttachedSharing = 3
)

// isAttachedAlready reports whether an error of HostAttach means that the endpoint is attached: hcsshim returns the code of
// the call, or the text of the response. Windows has that text for the code, in English or in its own language.
func isAttachedAlready(err error) bool {
	var code windows.Errno
	return errors.As(err, &code) && uint32(code) == codeHNSAlreadyAttached ||
		saysAttachedAlready(err.Error(), windows.Errno(codeHNSAlreadyAttached).Error())
}

// listAttached returns the IDs of the endpoints that are attached, in lower case. HNS may have another state than Attached
// for an endpoint of the machine, so an adapter of the machine with the endpoint's hardware or IP address counts, too.
func listAttached(adapters []adapter) (map[string]bool, error) {
	if err := openHNS(); err != nil {
		return nil, err
	}
	list, err := hcsshim.HNSListEndpointRequest()
	if err != nil {
		return nil, fmt.Errorf("list the states of HNS endpoints: %w", hnsError(err))
	}
	attached := map[string]bool{}
	for _, endpoint := range list {
		if endpoint.State == stateAttached || endpoint.State == stateAttachedSharing ||
			hasAdapter(adapters, endpoint.MacAddress, endpoint.IPAddress) {
			attached[strings.ToLower(endpoint.Id)] = true
		}
	}
	return attached, nil
}

// configurationOf returns the addresses that an endpoint of the network asks for; none, if HNS is to choose.
func configurationOf(network hcn.HostComputeNetwork, address string) []hcn.IpConfig {
	if address == "" {
		return nil
	}
	return []hcn.IpConfig{{IpAddress: address, PrefixLength: prefixLengthOf(subnetOf(prefixes(network)))}}
}
