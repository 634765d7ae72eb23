package plan

import (
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Windows registers the addresses of each adapter in the DNS of its domain, under the host's name. The adapter of
// kube-proxy's endpoint has an address of the pod subnet, which is not reachable from outside. The operator owns
// this adapter and deletes it with the endpoint, so the ledger has no original value. If a write fails, the host
// can still become a node: the ledger records the refusal, and the write is not retried in the same boot.

// RegistrationDisabled is the value that disables DNS registration of an adapter. By default, Windows
// registers the addresses.
const RegistrationDisabled = 0

// RegistrationName returns the registry value of an adapter, given its identifier ("{GUID}").
func RegistrationName(adapter string) host.RegistryName {
	return host.RegistryName{
		Key: `SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\` + adapter, Name: "RegistrationEnabled",
	}
}

// disableRegistration disables DNS registration of kube-proxy's endpoint adapter. AttachEndpoint does the same:
// this step is for an adapter that registers nevertheless.
func (m *planner) disableRegistration() {
	refusal := m.facts.Ledger.RegistrationRefusal
	refused := refusal != nil && refusal.BootID == m.facts.System.BootID
	if m.facts.RegisteringAdapter == "" || refused || m.unmet[nodespec.NeedSourceVIP] {
		return
	}
	name := m.spec.Network.SourceVIPEndpoint
	m.addOperation(DisableDNSRegistration{Endpoint: name, Adapter: m.facts.RegisteringAdapter},
		"the adapter of endpoint %s registers in DNS under the host's name, with an address that does not reach the host", name)
}
