package fake

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// CreateNetwork creates an HNS network. It returns an error if the network exists or the feature Containers is not
// enabled.
func (m *Machine) CreateNetwork(network host.HNSNetwork) error {
	return m.console.CreateNetwork(network)
}

// CreateNetwork creates an HNS network, as hybrid-overlay-node does. It returns an error if the network exists or the
// feature Containers is not enabled.
func (p *Process) CreateNetwork(network host.HNSNetwork) error {
	return p.runLocked(func(m *Machine) error {
		if err := m.checkNetwork(network); err != nil {
			return fmt.Errorf("create HNS network %s: %w", network.Name, err)
		}
		if isBoundToAdapter(network) {
			network.ManagementIP, network.NoHostRoute = m.options.ManagementIP, m.options.NoHostRoute
		}
		m.moveAdapter(func() { m.networks = append(m.networks, network) })
		p.recordEntry(KindNetwork, "create network "+network.Name+" "+network.Subnet, 0)
		m.loseStaticAddress(network)
		return nil
	})
}

// HasNetwork reports whether an HNS network exists.
func (m *Machine) HasNetwork(name string) bool {
	m.lock()
	defer m.unlock()
	return m.networkIndex(name) >= 0
}

func (m *Machine) checkNetwork(network host.HNSNetwork) error {
	if err := m.checkHNS(); err != nil {
		return err
	}
	if m.networkIndex(network.Name) >= 0 {
		return host.ErrExist
	}
	_, err := netip.ParsePrefix(network.Subnet)
	return err
}

// loseNetworks removes networking that does not persist across a boot: overlay networks, which hybrid-overlay-node
// creates as non-persistent, with their endpoints, and the attachments of the remaining endpoints.
func (m *Machine) loseNetworks() {
	for i := range m.endpoints {
		m.endpoints[i].Attached, m.endpoints[i].Adapter = false, ""
	}
	for _, network := range slices.Clone(m.networks) {
		if !strings.EqualFold(network.Type, "Overlay") {
			continue
		}
		m.moveAdapter(func() { m.dropNetwork(network.Name) })
		m.journal.Append(KindNetwork, "lose network "+network.Name+": not persistent", 0)
	}
}

// dropNetwork deletes a network and its endpoints.
func (m *Machine) dropNetwork(name string) {
	m.networks = slices.DeleteFunc(m.networks, func(n host.HNSNetwork) bool { return strings.EqualFold(n.Name, name) })
	m.endpoints = slices.DeleteFunc(m.endpoints, func(e host.HNSEndpoint) bool {
		return strings.EqualFold(e.Network, name)
	})
}

func (m *Machine) networkIndex(name string) int {
	return slices.IndexFunc(m.networks, func(n host.HNSNetwork) bool { return strings.EqualFold(n.Name, name) })
}

func (m *Machine) endpointIndex(name string) int {
	return slices.IndexFunc(m.endpoints, func(e host.HNSEndpoint) bool { return strings.EqualFold(e.Name, name) })
}

// networks implements host.Networks for one process.
type networks struct{ p *Process }

func (n networks) runOperation(ctx context.Context, method, target string, action func(*Machine) error) error {
	return n.p.runOperation(ctx, "Networks", method, target, func(m *Machine) error {
		err := m.checkHNS()
		if err == nil {
			m.vanishListed()
			err = action(m)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, target, err)
		}
		return nil
	})
}

func (n networks) Networks(ctx context.Context) (list []host.HNSNetwork, err error) {
	err = n.runOperation(ctx, "Networks", "", func(m *Machine) error { list = slices.Clone(m.networks); return nil })
	return list, err
}

func (n networks) Endpoints(ctx context.Context) (list []host.HNSEndpoint, err error) {
	err = n.runOperation(ctx, "Endpoints", "", func(m *Machine) error { list = m.visibleEndpoints(); return nil })
	return list, err
}

func (n networks) DeleteNetwork(ctx context.Context, name string) error {
	return n.runOperation(ctx, "DeleteNetwork", name, func(m *Machine) error {
		if m.networkIndex(name) < 0 {
			return host.ErrNotExist
		}
		if m.deleteVanishing(name) {
			return nil
		}
		m.moveAdapter(func() { m.dropNetwork(name) })
		n.p.recordEntry(KindNetwork, "delete network "+name, 0)
		return nil
	})
}

func (n networks) CreateEndpoint(ctx context.Context, network, name, address string) (made host.HNSEndpoint,
	err error) {
	err = n.runOperation(ctx, "CreateEndpoint", name, func(m *Machine) error {
		i := m.networkIndex(network)
		if i < 0 || m.deleteVanishing(network) {
			return fmt.Errorf("network %s: %w", network, host.ErrNotExist)
		}
		if m.endpointIndex(name) >= 0 {
			return host.ErrExist
		}
		address, err := m.endpointAddress(m.networks[i], address)
		if err != nil {
			return err
		}
		made = host.HNSEndpoint{Name: name, Network: m.networks[i].Name, Address: address}
		m.endpoints = append(m.endpoints, made)
		n.p.recordEntry(KindNetwork, "create endpoint "+name+" "+address, 0)
		return nil
	})
	return made, err
}

func (n networks) AttachEndpoint(ctx context.Context, name string) error {
	return n.runOperation(ctx, "AttachEndpoint", name, func(m *Machine) error {
		i := m.endpointIndex(name)
		if i < 0 || !m.endpoints[i].Attached && m.deleteVanishing(name) {
			return host.ErrNotExist
		}
		if err := m.refuseAttach(); err != nil {
			return err
		}
		if !m.endpoints[i].Attached {
			m.attachments++
			m.endpoints[i].Attached = true
			m.endpoints[i].Adapter = "{" + newStableID("adapter", m.options.System.MachineID, name, strconv.Itoa(m.attachments)) + "}"
			n.p.recordEntry(KindNetwork, "attach endpoint "+name, 0)
		}
		return nil
	})
}

// endpointAddress returns the address assigned to an endpoint that requests the given address, or any if empty.
func (m *Machine) endpointAddress(network host.HNSNetwork, wanted string) (string, error) {
	if wanted == "" {
		return m.freeAddress(network)
	}
	subnet, err := netip.ParsePrefix(network.Subnet)
	if err != nil {
		return "", err
	}
	address, err := netip.ParseAddr(wanted)
	taken := slices.ContainsFunc(m.endpoints, func(e host.HNSEndpoint) bool {
		return e.Network == network.Name && e.Address == wanted
	})
	if err != nil || !subnet.Contains(address) || taken {
		return "", fmt.Errorf("the IP address %s is invalid, reserved or in use", wanted)
	}
	return wanted, nil
}

// freeAddress returns the lowest unused address of the subnet. The first address belongs to the gateway, and the last
// is the broadcast address.
func (m *Machine) freeAddress(network host.HNSNetwork) (string, error) {
	subnet, err := netip.ParsePrefix(network.Subnet)
	if err != nil {
		return "", err
	}
	taken := map[string]bool{}
	for _, e := range m.endpoints {
		taken[e.Address] = taken[e.Address] || e.Network == network.Name
	}
	first := subnet.Masked().Addr().Next().Next()
	for address := first; subnet.Contains(address.Next()); address = address.Next() {
		if !taken[address.String()] {
			return address.String(), nil
		}
	}
	return "", fmt.Errorf("network %s has no free address in %s", network.Name, network.Subnet)
}

func (n networks) DeleteEndpoint(ctx context.Context, name string) error {
	return n.runOperation(ctx, "DeleteEndpoint", name, func(m *Machine) error {
		i := m.endpointIndex(name)
		if i < 0 {
			return host.ErrNotExist
		}
		if m.deleteVanishing(name) {
			return nil
		}
		m.endpoints = slices.Delete(m.endpoints, i, i+1)
		n.p.recordEntry(KindNetwork, "delete endpoint "+name, 0)
		return nil
	})
}
