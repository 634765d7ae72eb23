package fake

import (
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Parts of Windows' container networking. On releases with separate features for these parts, the feature Containers
// does not include them.
const (
	hnsFeature = "Containers-HNS"
	vfpFeature = "Containers-SDN"
	hnsService = "hns"
	vfpService = "vfpext"
)

// Registry value that preserves the address of an adapter if an administrator, not DHCP, assigned the address.
const (
	hnsState           = `SYSTEM\CurrentControlSet\Services\hns\State`
	devicelessDisabled = "DeviceLessNicDisabled"
)

// isFeatureActive reports whether a feature is in effect since the last boot.
func (m *Machine) isFeatureActive(feature string) bool {
	f := m.features[foldCase(feature)]
	return f != nil && (f.state == host.FeatureEnabled || f.state == host.FeatureDisablePending)
}

// hasNetworkingPart reports whether a networking part is installed by its separate feature, or by Containers on other
// releases.
func (m *Machine) hasNetworkingPart(feature string) bool {
	if m.features[foldCase(feature)] == nil {
		return m.isFeatureActive("Containers")
	}
	return m.isFeatureActive(feature)
}

// syncNetworkingServices creates and deletes services according to the enabled features.
func (m *Machine) syncNetworkingServices() {
	for _, part := range []struct{ feature, service, shown string }{
		{hnsFeature, hnsService, "Host Network Service"},
		{vfpFeature, vfpService, "Microsoft Azure VFP Switch Extension"},
	} {
		if !m.hasNetworkingPart(part.feature) {
			delete(m.services, foldCase(part.service))
			continue
		}
		if m.services[foldCase(part.service)] != nil {
			continue
		}
		start := host.StartAutomatic
		if m.options.HNSStoppedAtBoot {
			start = host.StartManual
		}
		m.panicOnError(false, m.configureService(host.ServiceConfig{
			Name: part.service, DisplayName: part.shown, StartType: start,
			CommandLine: `C:\Windows\System32\svchost.exe -k NetSvcs -p -s ` + part.service,
		}))
	}
}

// checkHNS returns an error if the Host Networking Service does not answer.
func (m *Machine) checkHNS() error {
	s := m.services[foldCase(hnsService)]
	switch {
	case !m.isFeatureActive("Containers") || s == nil:
		return errNoHNS
	case (m.options.HNSStoppedAtBoot || m.options.HNSSettingsReadAtStart) && s.state != host.ServiceRunning:
		return fmt.Errorf("service hns is %s: %w", s.state, errNoHNS)
	}
	return nil
}

// loseStaticAddress removes a manually assigned address from an adapter when a network binds the adapter. Windows then
// requests an address by DHCP, except on unaffected releases and if the registry value preserves the address.
func (m *Machine) loseStaticAddress(network host.HNSNetwork) {
	deviceless := m.hasDevicelessDisabled()
	if m.options.HNSSettingsReadAtStart {
		deviceless = m.hnsDeviceless
	}
	known := m.options.System.Version == WindowsServer2022().Version || deviceless
	if isBoundToAdapter(network) && m.options.StaticAddress && !known && !m.cutOff {
		m.cutOff = true
		m.journal.Append(KindNetwork, "lose the address: network "+network.Name+" uses the adapter, and DHCP assigns no address", 0)
	}
}

// hasDevicelessDisabled reports whether the registry contains the value that preserves static addresses.
func (m *Machine) hasDevicelessDisabled() bool {
	return m.registry[registryKey(hnsState, devicelessDisabled)] == 1
}
