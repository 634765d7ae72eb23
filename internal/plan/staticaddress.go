package plan

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// When HNS makes the pods' network, a virtual adapter takes the place of the one with the default route. An address
// that came from DHCP moves with it. One that an administrator gave does so on Windows Server 2022; on other releases
// Windows asks DHCP for an address instead, and the host cannot be reached any more, unless the registry says that
// there are no deviceless adapters. Source: OVN-Kubernetes, issue 2530, and the prerequisites of hosts in the documentation of the
// Windows Machine Config Operator.

// devicelessName is the value in the registry. The Host Networking Service may read it when it makes a switch, or only when it
// starts: both are served.
var devicelessName = host.RegistryName{
	Key: `SYSTEM\CurrentControlSet\Services\hns\State`, Name: "DeviceLessNicDisabled",
}

const (
	devicelessDisabled = 1
	// keepsStatic is the version of the release that keeps static addresses by itself.
	keepsStatic = "10.0.20348"
)

// RegistryBefore is a value of the registry before we set it; nil: not there.
type RegistryBefore struct {
	Value *uint32 `json:"value"`
	// BootID is the boot in which we set the value: services that have run since before do not know it.
	BootID string `json:"bootID,omitempty"`
}

// DevicelessName names the value of the registry that facts have.
func DevicelessName() host.RegistryName { return devicelessName }

// risksStaticAddress reports whether the pods' network would take the host its address.
func risksStaticAddress(facts Facts) bool {
	set := facts.DevicelessDisabled != nil && *facts.DevicelessDisabled == devicelessDisabled
	return facts.System.StaticAddress && facts.System.Version != keepsStatic && !set
}

// keepStaticAddress has the host keep a static address, before hybrid-overlay-node makes the network. The Host Networking
// Service is stopped before the value is written, and started by wakeNetworking: an agent that is killed in between leaves
// no service that runs without the value. Where the feature of the service waits for a restart, its key is not there yet.
func (m *maker) keepStaticAddress() {
	service, there := m.facts.HNS[nodespec.ServiceHNS]
	if m.spec.Network.HNSNetwork == "" || !risksStaticAddress(m.facts) || m.reboot != "" && !there {
		return
	}
	runs := there && service.State != host.ServiceStopped
	if runs && m.reboot == "" && m.networkReason() != "" && len(m.foreignNetworks()) == 0 {
		m.stopsHNS = true
		m.add(StopService{Service: nodespec.ServiceHNS}, "the Host Networking Service may read the registry value %s only at its start",
			devicelessName.Name)
	}
	address := strings.Join(m.facts.System.Addresses[:min(1, len(m.facts.System.Addresses))], "")
	m.add(SetRegistryNumber{At: devicelessName, Value: devicelessDisabled},
		"the host's address %s was not assigned by DHCP, and the pod network would remove it", address)
}

// staticAddressReboot returns the reason to restart a host whose Host Networking Service may not know the value of the
// registry, while other programs use the service. It is empty once the host was configured: then the service has created
// the pods' network with the value.
func (m *maker) staticAddressReboot() string {
	before := m.facts.Ledger.StaticAddress
	sameBoot := before != nil && before.BootID != "" && before.BootID == m.facts.System.BootID
	foreign := m.foreignNetworks()
	if !sameBoot && !risksStaticAddress(m.facts) || m.facts.Applied != "" || m.networkReason() == "" || len(foreign) == 0 {
		return ""
	}
	return "the Host Networking Service may read the registry value " + devicelessName.Name +
		" only at its start, and other programs use it (HNS networks: " + strings.Join(foreign, ", ") + ")"
}

// foreignNetworks returns the names of the HNS networks that the services of a node do not create.
func (m *maker) foreignNetworks() (names []string) {
	own := slices.Concat(m.spec.Network.OwnedNetworks, m.facts.Ledger.Networks, []string{m.spec.Network.HNSNetwork})
	for _, network := range m.facts.Networks {
		if !containsFold(own, network.Name) {
			names = append(names, network.Name)
		}
	}
	return names
}

// recordStaticAddress records the value before we set it, and the boot until which it is not set.
func recordStaticAddress(facts Facts) *RegistryBefore {
	before := facts.Ledger.StaticAddress
	if !risksStaticAddress(facts) {
		return before
	}
	value := facts.DevicelessDisabled
	if before != nil {
		value = before.Value
	}
	return &RegistryBefore{Value: value, BootID: facts.System.BootID}
}

// staticAddress gives the value of the registry back.
func (r *restorer) staticAddress() {
	before, now := r.facts.Ledger.StaticAddress, r.facts.DevicelessDisabled
	switch {
	case before == nil:
	case before.Value == nil && now != nil:
		r.add(DeleteRegistryValue{At: devicelessName}, false)
	case before.Value != nil && (now == nil || *now != *before.Value):
		r.add(SetRegistryNumber{At: devicelessName, Value: *before.Value}, false)
	}
}
