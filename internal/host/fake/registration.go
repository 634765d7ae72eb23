package fake

import (
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Windows registers the addresses of all adapters in DNS under the host name, except for adapters with a registry
// value that disables the registration. Values of removed adapters are kept.
const (
	interfacesKey       = `SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces`
	registrationEnabled = "RegistrationEnabled"
)

// DNSAddresses returns the addresses that the machine registers in DNS under its name.
func (m *Machine) DNSAddresses() []string {
	m.lock()
	defer m.unlock()
	list := slices.Clone(m.options.Addresses)
	for _, endpoint := range m.endpoints {
		value, there := m.registry[registryKey(interfacesKey+`\`+endpoint.Adapter, registrationEnabled)]
		if endpoint.Adapter != "" && (!there || value != 0) {
			list = append(list, endpoint.Address)
		}
	}
	return list
}

// withoutAdapters removes the identifiers of adapters, which Windows creates for each attachment.
func withoutAdapters(numbers registry, endpoints []host.HNSEndpoint) (map[string]uint32, []host.HNSEndpoint) {
	numbers, endpoints = maps.Clone(numbers), append([]host.HNSEndpoint(nil), endpoints...)
	maps.DeleteFunc(numbers, func(name string, _ uint32) bool { return strings.HasPrefix(name, foldCase(interfacesKey+`\`)) })
	for i := range endpoints {
		endpoints[i].Adapter = ""
	}
	return numbers, endpoints
}
