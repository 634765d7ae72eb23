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

// Only the older API (HNSCall of vmcompute.dll) reports whether an endpoint is attached: GET /endpoints/ lists all
// endpoints with their State. The same API attaches an endpoint to the machine: POST /endpoints/<ID>/attach with
// {"SystemType":"Host","CompartmentId":1}, like Attach-HNSHostEndpoint of Microsoft's hns.psm1. Windows then creates
// an adapter "vEthernet (<name>)" with the addresses of the endpoint. The newer API has namespaces of the type
// HostDefault for this purpose, but no program is known to use such namespaces.

func (networks) AttachEndpoint(ctx context.Context, name string) error {
	err := runDetached(ctx, func() error { return attachEndpoint(name) })
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
	adapters, _ := adaptersUp() // without adapters only the HNS state counts
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

// attachListed attaches a listed endpoint. HNS refuses an endpoint that is already attached. The older API usually
// returns no code but only the text "Element not found." in the language of Windows. Therefore, after another
// failure, attachListed searches for the endpoint again.
func attachListed(endpoint hcn.HostComputeEndpoint) error {
	err := (&hcsshim.HNSEndpoint{Id: endpoint.Id}).HostAttach(hostCompartment)
	if err == nil || isAttachedAlready(err) {
		return nil
	}
	list, listErr := listEndpoints()
	if listErr == nil && !slices.ContainsFunc(list, func(each hcn.HostComputeEndpoint) bool {
		return strings.EqualFold(each.Id, endpoint.Id)
	}) {
		return classifiedError{err, host.ErrNotExist}
	}
	return hnsError(err)
}

// States of endpoints in the older API. No source documents the state of an endpoint attached to the machine itself.
const (
	stateAttached        = 2
	stateAttachedSharing = 3
)

// isAttachedAlready reports whether an error of HostAttach means that the endpoint is already attached. hcsshim
// returns the code of the call or the text of the response. The text is the Windows message for the code, in English
// or in the language of Windows.
func isAttachedAlready(err error) bool {
	var code windows.Errno
	return errors.As(err, &code) && uint32(code) == codeHNSAlreadyAttached ||
		isAttachedMessage(err.Error(), windows.Errno(codeHNSAlreadyAttached).Error())
}

// listAttached returns the IDs of the attached endpoints in lower case. For an endpoint of the machine, HNS may
// report a state other than Attached. Therefore, an adapter of the machine with the hardware or IP address of the
// endpoint also counts.
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

// configurationOf returns the addresses to request for an endpoint of the network, or nil if HNS must choose an
// address.
func configurationOf(network hcn.HostComputeNetwork, address string) []hcn.IpConfig {
	if address == "" {
		return nil
	}
	return []hcn.IpConfig{{IpAddress: address, PrefixLength: prefixLengthOf(subnetOf(subnetPrefixes(network)))}}
}
