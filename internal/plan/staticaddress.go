package plan

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// When HNS creates the pod network, a virtual adapter replaces the adapter with the default route. An address from
// DHCP moves to the virtual adapter. A static address moves only on Windows Server 2022. On other releases Windows
// requests an address from DHCP instead, and the host becomes unreachable, unless the registry disables deviceless
// adapters. Source: OVN-Kubernetes, issue 2530, and the prerequisites of hosts in the documentation of the Windows
// Machine Config Operator.

// devicelessName is the registry value. The Host Networking Service may read the value for each new switch, or only
// on start: both cases are supported.
var devicelessName = host.RegistryName{
	Key: `SYSTEM\CurrentControlSet\Services\hns\State`, Name: "DeviceLessNicDisabled",
}

const (
	devicelessDisabled = 1
	// keepsStatic is the Windows version that keeps static addresses by default.
	keepsStatic = "10.0.20348"
)

// RegistryBefore is the original value in the registry; nil: did not exist.
type RegistryBefore struct {
	Value *uint32 `json:"value"`
	// BootID is the boot in which the value was set: services that have been running since before do not know the
	// value.
	BootID string `json:"bootID,omitempty"`
}

// DevicelessName returns the name of the registry value in the facts.
func DevicelessName() host.RegistryName { return devicelessName }

// canLoseStaticAddress reports whether the creation of the pod network would remove the host's address.
func canLoseStaticAddress(facts Facts) bool {
	set := facts.DevicelessDisabled != nil && *facts.DevicelessDisabled == devicelessDisabled
	return facts.System.StaticAddress && facts.System.Version != keepsStatic && !set
}

// keepStaticAddress keeps a static address of the host, before hybrid-overlay-node creates the network. The Host
// Networking Service is stopped before the value is written, and started by wakeNetworking. An agent that is killed
// in between leaves no service running without the value. While the service's feature waits for a restart, the
// registry key does not exist yet.
func (m *planner) keepStaticAddress() {
	service, there := m.facts.HNS[nodespec.ServiceHNS]
	if m.spec.Network.HNSNetwork == "" || !canLoseStaticAddress(m.facts) || m.reboot != "" && !there {
		return
	}
	runs := there && service.State != host.ServiceStopped
	if runs && m.reboot == "" && m.networkReason() != "" && len(m.foreignNetworks()) == 0 {
		m.stopsHNS = true
		m.addOperation(StopService{Service: nodespec.ServiceHNS}, "the Host Networking Service may read the registry value %s only at its start",
			devicelessName.Name)
	}
	address := strings.Join(m.facts.System.Addresses[:min(1, len(m.facts.System.Addresses))], "")
	m.addOperation(SetRegistryNumber{At: devicelessName, Value: devicelessDisabled},
		"the host's address %s was not assigned by DHCP, and the pod network would remove it", address)
}

// staticAddressReboot returns the reason to restart a host with a Host Networking Service that may not know the
// registry value, while other programs use the service. The reason is empty once the host was configured: then the
// service has created the pod network with the value.
func (m *planner) staticAddressReboot() string {
	before := m.facts.Ledger.StaticAddress
	sameBoot := before != nil && before.BootID != "" && before.BootID == m.facts.System.BootID
	foreign := m.foreignNetworks()
	if !sameBoot && !canLoseStaticAddress(m.facts) || m.facts.Applied != "" || m.networkReason() == "" || len(foreign) == 0 {
		return ""
	}
	return "the Host Networking Service may read the registry value " + devicelessName.Name +
		" only at its start, and other programs use it (HNS networks: " + strings.Join(foreign, ", ") + ")"
}

// foreignNetworks returns the names of the HNS networks that the services of a node do not create.
func (m *planner) foreignNetworks() (names []string) {
	own := slices.Concat(m.spec.Network.OwnedNetworks, m.facts.Ledger.Networks, []string{m.spec.Network.HNSNetwork})
	for _, network := range m.facts.Networks {
		if !containsFold(own, network.Name) {
			names = append(names, network.Name)
		}
	}
	return names
}

// recordStaticAddress records the original value and the current boot.
func recordStaticAddress(facts Facts) *RegistryBefore {
	before := facts.Ledger.StaticAddress
	if !canLoseStaticAddress(facts) {
		return before
	}
	value := facts.DevicelessDisabled
	if before != nil {
		value = before.Value
	}
	return &RegistryBefore{Value: value, BootID: facts.System.BootID}
}

// restoreStaticAddress restores the original registry value.
func (r *restorePlanner) restoreStaticAddress() {
	before, now := r.facts.Ledger.StaticAddress, r.facts.DevicelessDisabled
	switch {
	case before == nil:
	case before.Value == nil && now != nil:
		r.addStep(DeleteRegistryValue{At: devicelessName}, false)
	case before.Value != nil && (now == nil || *now != *before.Value):
		r.addStep(SetRegistryNumber{At: devicelessName, Value: *before.Value}, false)
	}
}
