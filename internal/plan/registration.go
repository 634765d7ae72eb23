package plan

import (
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Windows registers the addresses of each adapter in the DNS of its domain, under the host's name. The adapter of
// kube-proxy's endpoint has an address of the pod subnet, at which the host is not reached from outside. The adapter is
// ours and goes with its endpoint, so the ledger has no former value. A failed write keeps no host from being a node:
// the ledger has the refusal, and the write is not repeated in the same boot.

// RegistrationDisabled is the value that keeps an adapter out of DNS. Without a value it registers.
const RegistrationDisabled = 0

// RegistrationName names the registry value of an adapter, by its identifier ("{GUID}").
func RegistrationName(adapter string) host.RegistryName {
	return host.RegistryName{
		Key: `SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\` + adapter, Name: "RegistrationEnabled",
	}
}

// disableRegistration keeps the adapter of kube-proxy's endpoint out of DNS. AttachEndpoint does it as well: this step is
// for an adapter that registers all the same.
func (m *maker) disableRegistration() {
	refusal := m.facts.Ledger.RegistrationRefusal
	refused := refusal != nil && refusal.BootID == m.facts.System.BootID
	if m.facts.RegisteringAdapter == "" || refused || m.unmet[nodespec.NeedSourceVIP] {
		return
	}
	name := m.spec.Network.SourceVIPEndpoint
	m.add(DisableDNSRegistration{Endpoint: name, Adapter: m.facts.RegisteringAdapter},
		"the adapter of endpoint %s registers in DNS under the host's name, with an address that does not reach the host", name)
}
