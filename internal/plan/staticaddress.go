package plan

import (
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// When HNS makes the pods' network, a virtual adapter takes the place of the one with the default route. An address
// that came from DHCP moves with it. One that an administrator gave does so on Windows Server 2022; on other releases
// Windows asks DHCP for an address instead, and the host cannot be reached any more, unless the registry says that
// there are no deviceless adapters. Source: OVN-Kubernetes, issue 2530, and the prerequisites of hosts in the documentation of the
// Windows Machine Config Operator.

// devicelessName is the value in the registry. The Host Networking Service reads it when it makes a switch.
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
}

// DevicelessName names the value of the registry that facts have.
func DevicelessName() host.RegistryName { return devicelessName }

// risksStaticAddress reports whether the pods' network would take the host its address.
func risksStaticAddress(facts Facts) bool {
	set := facts.DevicelessDisabled != nil && *facts.DevicelessDisabled == devicelessDisabled
	return facts.System.StaticAddress && facts.System.Version != keepsStatic && !set
}

// keepStaticAddress has the host keep a static address, before hybrid-overlay-node makes the network.
func (m *maker) keepStaticAddress() {
	if m.spec.Network.HNSNetwork != "" && risksStaticAddress(m.facts) {
		address := strings.Join(m.facts.System.Addresses[:min(1, len(m.facts.System.Addresses))], "")
		m.add(SetRegistryNumber{At: devicelessName, Value: devicelessDisabled},
			"the host's address %s was not given by DHCP, and the pods' network would take it away", address)
	}
}

func recordStaticAddress(facts Facts) *RegistryBefore {
	if before := facts.Ledger.StaticAddress; before != nil || !risksStaticAddress(facts) {
		return before
	}
	return &RegistryBefore{Value: facts.DevicelessDisabled}
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
