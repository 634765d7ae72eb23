package fake

import "strings"

// VanishHNS simulates another program that deletes an HNS network or endpoint during the next relevant call: during a
// list, or, with afterList, between a list and the use of the object. The returned function reports whether the
// object was deleted.
func (m *Machine) VanishHNS(name string, afterList bool) (vanished func() bool) {
	m.lock()
	defer m.unlock()
	if m.faults.vanishing == nil {
		m.faults.vanishing = map[string]bool{}
	}
	m.faults.vanishing[foldCase(name)] = afterList
	return func() bool {
		m.lock()
		defer m.unlock()
		_, waits := m.faults.vanishing[foldCase(name)]
		return !waits
	}
}

// vanishListed deletes the objects that vanish during a list. The callers then start the list again.
func (m *Machine) vanishListed() {
	for name, afterList := range m.faults.vanishing {
		if !afterList {
			m.deleteObject(name)
		}
	}
}

// deleteVanishing deletes an object that vanishes after a list, and reports whether the object was deleted.
func (m *Machine) deleteVanishing(name string) bool {
	afterList, vanishing := m.faults.vanishing[foldCase(name)]
	return vanishing && afterList && m.deleteObject(foldCase(name))
}

// deleteObject deletes an object and reports whether the object existed.
func (m *Machine) deleteObject(name string) bool {
	switch i := m.endpointIndex(name); {
	case i >= 0:
		m.endpoints = append(m.endpoints[:i:i], m.endpoints[i+1:]...)
	case m.networkIndex(name) >= 0:
		m.moveAdapter(func() { m.dropNetwork(name) })
	default:
		return false
	}
	delete(m.faults.vanishing, name)
	m.journal.Append(KindNetwork, "another program deletes "+strings.ToLower(name), 0)
	return true
}
