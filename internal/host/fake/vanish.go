package fake

import "strings"

// VanishHNS has another program delete an HNS network or endpoint under the next call that concerns it: while it is
// listed, or, with afterList, between its being listed and its being used. The returned function reports whether that
// has happened.
func (m *Machine) VanishHNS(name string, afterList bool) (vanished func() bool) {
	m.lock()
	defer m.unlock()
	if m.faults.vanishing == nil {
		m.faults.vanishing = map[string]bool{}
	}
	m.faults.vanishing[key(name)] = afterList
	return func() bool {
		m.lock()
		defer m.unlock()
		_, waits := m.faults.vanishing[key(name)]
		return !waits
	}
}

// vanishListed deletes the objects that vanish while they are listed. Their calls begin the list again.
func (m *Machine) vanishListed() {
	for name, afterList := range m.faults.vanishing {
		if !afterList {
			m.vanish(name)
		}
	}
}

// vanishUsed deletes an object that vanishes after it was listed. It reports whether it did.
func (m *Machine) vanishUsed(name string) bool {
	afterList, vanishing := m.faults.vanishing[key(name)]
	return vanishing && afterList && m.vanish(key(name))
}

// vanish deletes an object, if it is there, and reports whether it was.
func (m *Machine) vanish(name string) bool {
	switch i := m.endpoint(name); {
	case i >= 0:
		m.endpoints = append(m.endpoints[:i:i], m.endpoints[i+1:]...)
	case m.network(name) >= 0:
		m.moveAdapter(func() { m.dropNetwork(name) })
	default:
		return false
	}
	delete(m.faults.vanishing, name)
	m.journal.Append(KindNetwork, "another program deletes "+strings.ToLower(name), 0)
	return true
}
