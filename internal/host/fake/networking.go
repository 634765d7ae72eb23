package fake

import (
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
)

// The parts of Windows' networking for containers. Where they are features of their own, the feature Containers does
// not bring them.
const (
	hnsFeature = "Containers-HNS"
	vfpFeature = "Containers-SDN"
	hnsService = "hns"
	vfpService = "vfpext"
)

// deviceless keeps the address of an adapter that has it from an administrator and not from DHCP.
const (
	hnsState           = `SYSTEM\CurrentControlSet\Services\hns\State`
	devicelessDisabled = "DeviceLessNicDisabled"
)

// inForce reports whether a feature is there since the last boot.
func (m *Machine) inForce(feature string) bool {
	f := m.features[key(feature)]
	return f != nil && (f.state == host.FeatureEnabled || f.state == host.FeatureDisablePending)
}

// brings reports whether Windows has what a feature of its own brings here, or Containers elsewhere.
func (m *Machine) brings(feature string) bool {
	if m.features[key(feature)] == nil {
		return m.inForce("Containers")
	}
	return m.inForce(feature)
}

// settleNetworking makes and takes away the services that features have brought.
func (m *Machine) settleNetworking() {
	for _, part := range []struct{ feature, service, shown string }{
		{hnsFeature, hnsService, "Host Network Service"},
		{vfpFeature, vfpService, "Microsoft Azure VFP Switch Extension"},
	} {
		if !m.brings(part.feature) {
			delete(m.services, key(part.service))
			continue
		}
		if m.services[key(part.service)] != nil {
			continue
		}
		start := host.StartAutomatic
		if m.options.HNSSleeps {
			start = host.StartManual
		}
		m.must(false, m.configure(host.ServiceConfig{
			Name: part.service, DisplayName: part.shown, StartType: start,
			CommandLine: `C:\Windows\System32\svchost.exe -k NetSvcs -p -s ` + part.service,
		}))
	}
}

// hns returns an error when the Host Networking Service does not answer.
func (m *Machine) hns() error {
	s := m.services[key(hnsService)]
	switch {
	case !m.inForce("Containers") || s == nil:
		return errNoHNS
	case (m.options.HNSSleeps || m.options.HNSReadsStateAtStart) && s.state != host.ServiceRunning:
		return fmt.Errorf("its service is %s: %w", s.state, errNoHNS)
	}
	return nil
}

// risksAddress takes the address away that an administrator gave to an adapter, when a network takes the adapter:
// Windows asks DHCP for one then, but for the releases that know better, and where the registry says not to.
func (m *Machine) risksAddress(network host.HNSNetwork) {
	deviceless := m.deviceless()
	if m.options.HNSReadsStateAtStart {
		deviceless = m.hnsDeviceless
	}
	known := m.options.System.Version == WindowsServer2022().Version || deviceless
	if bindsAdapter(network) && m.options.StaticAddress && !known && !m.cutOff {
		m.cutOff = true
		m.journal.Append(KindNetwork, "lose the address: network "+network.Name+" took the adapter, and DHCP gives none", 0)
	}
}

// deviceless reports whether the registry has the value that keeps static addresses.
func (m *Machine) deviceless() bool {
	return m.registry[registryKey(hnsState, devicelessDisabled)] == 1
}
