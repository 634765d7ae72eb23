//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Microsoft/hcsshim/hcn"
	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Another program, such as containerd at the end of a pod, may delete HNS objects between listing and opening. The
// contract suite has more such cases (hosttest/failures.go).
func TestNetworks_ConcurrentlyDeletedObjectsSkipped(t *testing.T) {
	requireSimulatedParts(t)
	enableHNS(t)
	machine, err := Open()
	requireNoError(t, err)
	const network, pod, other = "wmco-vanish", "wmco-vanish-pod", "wmco-vanish-other"
	subnet := host.HNSNetwork{Name: network, Type: "NAT", Subnet: "10.213.78.0/24"}
	n := networks{}
	for name, code := range map[string]int{"HNS' own code": 0, "ERROR_NOT_FOUND": codeElementNotFoundHR} {
		vanish := func(t *testing.T, what string, skip int) (mend func()) {
			t.Helper()
			_ = n.DeleteNetwork(t.Context(), network)
			requireNoError(t, createNetwork(t.Context(), machine, subnet))
			t.Cleanup(func() { _ = n.DeleteNetwork(context.WithoutCancel(t.Context()), network) })
			for _, endpoint := range []string{pod, other} {
				_, err := n.CreateEndpoint(t.Context(), network, endpoint, "")
				requireNoError(t, err)
			}
			return setFault(t, "hns", map[string]any{"Name": what, "Skip": skip, "Vanish": 1, "Code": code})
		}
		vanished := func(t *testing.T) {
			t.Helper()
			if left := faultNumber(t, "hns", "Vanish"); left != 0 {
				t.Error("nothing has vanished: the test shows nothing")
			}
		}
		t.Run(fmt.Sprintf("networks are listed without them (%s)", name), func(t *testing.T) {
			vanish(t, network, 0)
			networks, err := n.Networks(t.Context())
			requireNoError(t, err)
			if slices.ContainsFunc(networks, func(each host.HNSNetwork) bool { return each.Name == network }) {
				t.Errorf("listed %v", networks)
			}
			vanished(t)
		})
		t.Run(fmt.Sprintf("a deletion of another one succeeds (%s)", name), func(t *testing.T) {
			vanish(t, pod, 0)
			requireNoError(t, n.DeleteEndpoint(t.Context(), other))
			requireError(t, n.DeleteEndpoint(t.Context(), other), host.ErrNotExist)
			vanished(t)
		})
	}
}

func TestNetworks_StoppedServiceIsNotAbsence(t *testing.T) {
	requireSimulatedParts(t)
	enableHNS(t)
	setFault(t, "hns", map[string]any{"Answer": codeHNSManagerStopped})
	_, listErr := networks{}.Networks(t.Context())
	for call, err := range map[string]error{
		"list": listErr, "delete network": networks{}.DeleteNetwork(t.Context(), "n"),
		"delete endpoint": networks{}.DeleteEndpoint(t.Context(), "e"),
	} {
		if err == nil || errors.Is(err, host.ErrNotExist) || !strings.Contains(err.Error(), "hns must be running") {
			t.Errorf("%s: got error %v", call, err)
		}
	}
}

func TestIsAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                               {nil, false},
		"1168":                                   {windows.Errno(1168), true},
		"1168, wrapped":                          {fmt.Errorf("open: %w", windows.Errno(1168)), true},
		"1168 as an HRESULT":                     {windows.Errno(0x80070490), true},
		"HCN_E_NETWORK_NOT_FOUND":                {windows.Errno(0x803B0001), true},
		"HCN_E_ENDPOINT_NOT_FOUND, wrapped":      {fmt.Errorf("open: %w", windows.Errno(0x803B0002)), true},
		"a search of hcsshim without a result":   {fmt.Errorf("find: %w", hcn.EndpointNotFoundError{EndpointID: "1"}), true},
		"HCN_E_MANAGER_STOPPED":                  {windows.Errno(0x803B0020), false},
		"HCN_E_ADAPTER_NOT_FOUND, of a network":  {windows.Errno(0x803B0006), false},
		"an absence of another kind of objects":  {host.ErrNotExist, false},
		"a service that does not exist":          {windows.ERROR_SERVICE_DOES_NOT_EXIST, false},
		"several errors of which one is absence": {errors.Join(errors.New("x"), windows.Errno(1168)), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isAbsent(c.err); got != c.want {
				t.Errorf("%v: got %t", c.err, got)
			}
		})
	}
}
