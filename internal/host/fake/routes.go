package fake

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// routeTable contains the routes through the adapter of the default route, guarded by the machine's lock.
type routeTable struct {
	// added are the destinations of added routes. Added routes do not persist across a boot or a change of the
	// adapter.
	added []netip.Prefix
	// noDefault means that there is no default route and therefore no adapter.
	noDefault bool
}

// isBoundToAdapter reports whether a network of this type binds the adapter of the default route. Windows then moves the
// adapter's addresses and default route to a virtual adapter, but not the added routes.
func isBoundToAdapter(network host.HNSNetwork) bool {
	return slices.ContainsFunc([]string{"Overlay", "L2Bridge", "L2Tunnel", "Transparent"}, func(kind string) bool {
		return strings.EqualFold(network.Type, kind)
	})
}

// adapterName returns the name of the adapter of the default route.
func (m *Machine) adapterName() string {
	if slices.ContainsFunc(m.networks, isBoundToAdapter) {
		return "vEthernet (Ethernet)"
	}
	return "Ethernet"
}

// moveAdapter runs a change of the networks. If the change moves the default route to another adapter, added routes
// are lost.
func (m *Machine) moveAdapter(change func()) {
	before := m.adapterName()
	change()
	if after := m.adapterName(); after != before {
		m.loseRoutes("the default route moved from adapter " + before + " to " + after)
	}
}

func (m *Machine) loseRoutes(why string) {
	for _, destination := range m.routes.added {
		m.journal.Append(KindRoute, fmt.Sprintf("lose %s: %s", destination, why), 0)
	}
	m.routes.added = nil
}

// seedRoutes resets the routes at the start of a boot. At the first boot, it adds the routes of the image's setup.
func (m *Machine) seedRoutes() {
	m.loseRoutes("not persistent")
	if m.boots > 1 {
		return
	}
	for _, destination := range m.options.Routes {
		m.routes.added = append(m.routes.added, netip.MustParsePrefix(destination).Masked())
	}
}

func (t routeTable) listDestinations() []string {
	var list []string
	for _, destination := range t.added {
		list = append(list, destination.String())
	}
	slices.Sort(list)
	return list
}

// routes implements host.Routes for one process.
type routes struct{ p *Process }

func (r routes) ViaDefault(ctx context.Context) (list []string, err error) {
	err = r.p.runOperation(ctx, "Routes", "ViaDefault", "", func(m *Machine) error {
		if m.routes.noDefault {
			return nil
		}
		list = append(m.routes.listDestinations(), "0.0.0.0/0", "224.0.0.0/4", "255.255.255.255/32")
		for _, address := range m.options.Addresses {
			list = append(list, address+"/32")
		}
		slices.Sort(list)
		list = slices.Compact(list)
		return nil
	})
	return list, err
}

func (r routes) Add(ctx context.Context, destination string) error {
	return r.changeRoute(ctx, "Add", destination, func(m *Machine, prefix netip.Prefix) error {
		switch {
		case m.routes.noDefault:
			return fmt.Errorf("there is no default route: %w", host.ErrNotExist)
		case slices.Contains(m.routes.added, prefix):
			return nil
		}
		m.routes.added = append(m.routes.added, prefix)
		r.p.recordEntry(KindRoute, "add "+prefix.String()+" through "+m.adapterName(), 0)
		return nil
	})
}

func (r routes) Delete(ctx context.Context, destination string) error {
	return r.changeRoute(ctx, "Delete", destination, func(m *Machine, prefix netip.Prefix) error {
		if i := slices.Index(m.routes.added, prefix); i >= 0 {
			m.routes.added = slices.Delete(m.routes.added, i, i+1)
			r.p.recordEntry(KindRoute, "delete "+prefix.String(), 0)
		}
		return nil
	})
}

func (r routes) changeRoute(ctx context.Context, method, destination string,
	action func(*Machine, netip.Prefix) error) error {
	return r.p.runOperation(ctx, "Routes", method, destination, func(m *Machine) error {
		prefix, err := host.ParseDestination(destination)
		if err == nil {
			err = action(m, prefix)
		}
		if err != nil {
			return fmt.Errorf("%s route to %s: %w", strings.ToLower(method), destination, err)
		}
		return nil
	})
}

// AddedRoutes returns the destinations of the routes added to the adapter of the default route, sorted.
func (m *Machine) AddedRoutes() []string {
	m.lock()
	defer m.unlock()
	return m.routes.listDestinations()
}

// LoseRoutes deletes all added routes, as another program or a change of the adapter does.
func (m *Machine) LoseRoutes() {
	m.lock()
	defer m.unlock()
	m.loseRoutes("deleted by another program")
}

// LoseDefaultRoute deletes the default route until restore is called, like a disconnected cable.
func (m *Machine) LoseDefaultRoute() (restore func()) {
	m.lock()
	defer m.unlock()
	m.loseRoutes("the adapter is down")
	m.routes.noDefault = true
	return func() {
		m.lock()
		defer m.unlock()
		m.routes.noDefault = false
	}
}
